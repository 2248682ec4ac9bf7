import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makePublicKey } from '../../harness/keys.js';
import { TestConsole } from '../../harness/console.js';
import { statusIs } from '../../harness/control-plane.js';

/** A page has fewer stops than this. */
const MOST_STOPS = 150;

let test: TestConsole;

beforeAll(async () => {
  test = await TestConsole.start();
  const agent = await test.control.host({ gpus: 8 });
  for (const price of [1_200_000, 1_300_000]) await test.control.offer(agent, 1, price);
  const env = [{ key: 'MODEL', value: 'small', secret: false }];
  await test.control.template({ name: 'Desktop', kind: 'vm', mode: ['ssh'] });
  await test.control.template({ name: 'vLLM', mode: ['ssh'], env });
});
afterAll(() => test.stop());

/** Presses Tab until something has the focus. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.waitFor();
  for (let stops = 0; stops < MOST_STOPS; stops += 1) {
    if ((await target.and(page.locator(':focus')).count()) > 0) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`Tab does not lead to ${target.toString()}`);
}

async function typeInto(page: Page, target: Locator, text: string): Promise<void> {
  await tabTo(page, target);
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type(text);
}

/** Chooses by the arrow keys, from the first choice down. */
async function choose(page: Page, target: Locator, label: string): Promise<void> {
  await target.getByText(label, { exact: true }).waitFor({ state: 'attached' });
  await tabTo(page, target);
  await page.keyboard.press('Home');
  const chosen = () => target.locator('option:checked').textContent();
  for (let steps = 0; steps < 50 && (await chosen()) !== label; steps += 1) await page.keyboard.press('ArrowDown');
  expect(await chosen()).toBe(label);
}

it('leads from the sign-in to a running instance by the keyboard alone', async () => {
  const renter = await test.control.renter(10_000_000);
  await renter.api.post('/v1/ssh-keys', { name: 'laptop', public_key: makePublicKey('-t', 'ed25519') });
  const window = await test.open(renter);
  const { page, context } = window;
  window.expectComplaints(/401/);
  await context.clearCookies();
  const field = (label: string) => page.getByLabel(label, { exact: true });
  const enter = async (target: Locator) => {
    await tabTo(page, target);
    await page.keyboard.press('Enter');
  };

  await page.goto('/market');
  await window.reachSignIn('/market');
  await typeInto(page, page.locator('#email'), renter.email);
  await typeInto(page, page.locator('#password'), 'a renter password');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/market');
  await page.waitForSelector('[data-connection=live]', { state: 'attached' });

  await choose(page, field('Template'), 'vLLM (by the operator)');
  await page.waitForURL('**/market?template=*');
  await page.getByText('2 offers, 2 for vLLM').waitFor();
  await enter(page.locator('main li').nth(0).getByRole('link', { name: 'Deploy' }));
  await page.waitForURL('**/deploy?**');
  await page.getByRole('heading', { name: 'Deploy', exact: true }).waitFor();

  await choose(page, field('Template'), 'Desktop (does not fit; by the operator)');
  await page.waitForSelector('aside >> text=virtual machines');
  await choose(page, field('Template'), 'vLLM (by the operator)');
  await enter(page.getByRole('link', { name: 'Choose another machine' }).first());
  // What had the focus is gone: it goes on at what has come in its place.
  await page.locator('main [tabindex="-1"]:focus').waitFor();
  const machine = page.locator('main li', { hasText: '$1.30/h' });
  await enter(machine.getByRole('link', { name: /^Choose / }));
  await page.waitForURL('**/deploy?**offer=**');

  await typeInto(page, field('Label'), 'train-1');
  await tabTo(page, field('Size of the disk in GB'));
  await page.keyboard.press('ArrowRight');
  await typeInto(page, field('MODEL'), 'large');
  await enter(page.getByRole('button', { name: 'Add a variable' }));
  await typeInto(page, field('Name'), 'TOKEN');
  await typeInto(page, field('Value'), 'hush-hush');
  await tabTo(page, field('Secret'));
  await page.keyboard.press('Space');
  await typeInto(page, field('At most, in $'), '3.50');

  await page.waitForSelector('aside >> text=$1.30/h');
  await page.waitForSelector('aside button:enabled');
  await enter(page.locator('aside').getByRole('button', { name: 'Deploy', exact: true }));
  await page.waitForURL('**/instances/*-*');
  const [made] = (await renter.api.get<{ items: { id: string }[] }>('/v1/instances')).items;
  await statusIs(renter.api, made?.id ?? '', 'running');
  await page.waitForSelector('text=ssh -p');
  expect(await renter.api.get(`/v1/instances/${made?.id}`)).toMatchObject({
    label: 'train-1',
    disk_gb: 21,
    price_per_hour_micro: 13e5,
    max_charge_micro: 35e5,
  });
  await window.close();
});
