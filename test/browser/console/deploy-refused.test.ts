import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { eventually } from '../../../scripts/eventually.js';
import { sessionCookie } from '../../harness/chromium.js';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import type { Renter } from '../../harness/control-plane.js';
import type { FakeAgent } from '../../harness/fake-agent.js';
import { makePublicKey } from '../../harness/keys.js';

interface Made {
  id: string;
  stop_at: string | null;
  idle_stop_minutes: number | null;
}

const AGAIN = 'Type it again: secrets are not kept.';

let test: TestConsole;
let agent: FakeAgent;
let path: string;
let renter: Renter;
let window: ConsoleWindow;
let page: Page;

beforeAll(async () => {
  test = await TestConsole.start();
  agent = await test.control.host({ gpus: 8 });
  const offer = await test.control.offer(agent);
  const env = [
    { key: 'MODEL', value: 'small', secret: false },
    { key: 'TOKEN', value: 'hidden', secret: true },
  ];
  path = `/deploy?offer=${offer}&template=${await test.control.template({ name: 'vLLM', mode: ['ssh'], env })}`;
});
afterAll(() => test.stop());
beforeEach(async () => {
  renter = await test.control.renter();
  window = await test.open(renter);
  page = window.page;
  return () => window.close();
});

const deploy = () => page.locator('aside').getByRole('button', { name: 'Deploy', exact: true });
const field = (label: string) => page.getByLabel(label, { exact: true });
const isReady = () => page.waitForSelector('aside button:enabled');

/** Deploys, and returns what the control plane has made. */
async function deployed(): Promise<Made> {
  await isReady();
  await deploy().click();
  await page.waitForURL('**/instances/*-*');
  // The address changes before the page does.
  await deploy().waitFor({ state: 'detached' });
  return shown();
}

/** The instance whose page is shown. */
const shown = () => renter.api.get<Made>(`/v1${new URL(page.url()).pathname}`);

/** Deploys, and returns what the host is told. */
async function toldOf(made: Promise<Made>) {
  const { id } = await made;
  const command = await eventually('the command', () => agent.received.find(({ instanceId }) => instanceId === id));
  if (!command.running) throw new Error('it is not to run');
  return command.running.spec;
}

it('deploys nothing to which nobody could log in because the SSH keys were not read', async () => {
  await renter.api.post('/v1/ssh-keys', { name: 'laptop', public_key: makePublicKey('-t', 'ed25519') });
  window.expectComplaints(/500/);
  let noteAsked = () => {};
  const asked = new Promise<void>((resolve) => (noteAsked = resolve));
  let fail = () => {};
  const failing = new Promise<void>((resolve) => (fail = resolve));
  const sent: string[] = [];
  page.on('request', (request) => {
    if (request.method() === 'POST') sent.push(new URL(request.url()).pathname);
  });
  await page.route('**/v1/ssh-keys', async (route) => {
    noteAsked();
    await failing;
    const json = { code: 'INTERNAL', message: 'something went wrong', request_id: 'req_keys' };
    await route.fulfill({ status: 500, json });
  });
  const keys = page.locator('main section', { has: page.getByRole('heading', { name: 'SSH key' }) });
  await window.goTo(path);
  await asked;
  await keys.getByRole('status', { name: 'Loading' }).waitFor();
  expect(await deploy().isDisabled()).toBe(true);
  fail();
  await keys.getByText('req_keys').waitFor();
  await page.waitForSelector('aside >> text=Your SSH keys could not be read');
  expect(await deploy().isDisabled()).toBe(true);
  expect(sent).toEqual([]);
  await window.checkAccess();
  await page.unroute('**/v1/ssh-keys');
  await keys.getByRole('button', { name: 'Try again' }).click();
  await isReady();
  expect((await toldOf(deployed())).sshAuthorizedKey).toMatch(/^ssh-ed25519 /);

  // Nobody is kept from having no key, once it is they who say so.
  await window.goTo(path);
  await field('Key that may log in').selectOption({ label: 'None: nobody can log in by SSH' });
  expect((await toldOf(deployed())).sshAuthorizedKey).toBe('');
});

it('refuses a time to stop that is half typed, and names the limits that it sends', async () => {
  await window.goTo(path);
  await isReady();
  await field('Stop at').focus();
  await page.keyboard.press('1');
  await page.waitForSelector('text=Give a day and a time.');
  expect(await field('Stop at').getAttribute('aria-invalid')).toBe('true');
  expect(await deploy().isDisabled()).toBe(true);
  // What is taken back was never typed.
  await page.keyboard.press('Backspace');
  await page.getByText('Give a day and a time.').waitFor({ state: 'detached' });
  await isReady();
  await field('Stop at').fill('2038-01-19T03:14');
  await field('After idle minutes').fill('30');
  await field('What a limit does').selectOption('destroy');
  await page.waitForSelector('aside dt:text-is("Destroyed at")');
  await page.waitForSelector('aside dd:text-is("30 min")');
  await window.shoot('deploy-limits');
  expect(await deployed()).toMatchObject({ stop_at: '2038-01-19T03:14:00.000Z', idle_stop_minutes: 30 });
  // The same in the settings, and of a part of a time that was whole.
  await window.goTo(`${new URL(page.url()).pathname}?tab=settings`);
  await field('Stop at').focus();
  await page.keyboard.press('Backspace');
  await page.waitForSelector('text=Give a day and a time.');
  await field('Stop at').fill('');
  await field('Stop at').blur();
  await page.getByText('Give a day and a time.').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Save the label and the limits' }).click();
  await page.getByText('The settings are saved').waitFor();
  expect(await shown()).toMatchObject({ stop_at: null, idle_stop_minutes: 30 });
});

it('has secrets typed again that it has not kept, before it deploys', async () => {
  await window.goTo(path);
  await field('MODEL').fill('large');
  await field('TOKEN').fill('hush-hush');
  await page.getByRole('button', { name: 'Add a variable' }).click();
  await field('Name').fill('PASSWORD');
  await field('Value').fill('swordfish');
  await field('Secret').check();
  await isReady();
  await page.reload();
  const again = page.getByText(AGAIN);
  await again.nth(1).waitFor();
  expect(await deploy().isDisabled()).toBe(true);
  expect(await field('MODEL').inputValue()).toBe('large');
  await window.checkAccess();
  await window.shoot('deploy-forgotten');
  await page.getByRole('button', { name: 'Use the value of the template' }).click();
  await again.nth(1).waitFor({ state: 'detached' });
  expect(await field('Value').getAttribute('aria-invalid')).toBe('true');
  expect(await deploy().isDisabled()).toBe(true);
  await field('Value').fill('swordfish 2');
  const { env } = await toldOf(deployed());
  expect(Object.fromEntries(env.map(({ key, value }) => [key, value]))).toMatchObject({
    MODEL: 'large',
    TOKEN: 'hidden',
    PASSWORD: 'swordfish 2',
  });
});

it('keeps what was typed while its reader is at another page, without secrets, until it is deployed', async () => {
  const stored = () => page.evaluate<string>('JSON.stringify({ ...sessionStorage })');
  const goToBilling = async () => {
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Billing' }).click();
    await page.getByRole('heading', { name: 'Billing', exact: true }).waitFor();
  };
  await window.goTo(path);
  await isReady();
  // What nobody has touched is nothing to keep.
  await goToBilling();
  expect(await stored()).not.toContain('gpurent.draft.');
  await page.goBack();
  await field('Label').fill('typed by me');
  await field('TOKEN').fill('hush-hush');
  await goToBilling();
  await eventually('the draft', async () => (await stored()).includes('typed by me'));
  expect(await stored()).not.toContain('hush-hush');
  await page.goBack();
  await page.getByText(AGAIN).waitFor();
  expect(await field('Label').inputValue()).toBe('typed by me');
  await field('TOKEN').fill('hush-hush');
  await deployed();
  expect(await stored()).not.toContain('typed by me');
  await page.goBack();
  await isReady();
  expect(await field('Label').inputValue()).toBe('');

  // Nothing of it is for anybody else.
  await field('Label').fill('typed by me, again');
  await goToBilling();
  await eventually('the draft', async () => (await stored()).includes('typed by me, again'));
  const other = await test.control.renter();
  window.expectComplaints(/403|ERR_/);
  await window.context.addCookies([sessionCookie(test.home, other.api.token ?? '')]);
  await window.goTo(path);
  await isReady();
  expect(await field('Label').inputValue()).toBe('');
  expect(await stored()).not.toContain('typed by me');
});
