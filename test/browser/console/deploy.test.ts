import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { makePublicKey } from '../../harness/keys.js';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import { statusIs, type Renter } from '../../harness/control-plane.js';
import type { FakeAgent } from '../../harness/fake-agent.js';

let test: TestConsole;
let agent: FakeAgent;
let renter: Renter;
let window: ConsoleWindow;

beforeAll(async () => {
  test = await TestConsole.start();
  agent = await test.control.host({ gpus: 8 });
  await test.control.offer(agent, 1, 1_200_000);
  await test.control.offer(agent, 4, 4_500_000);
  const env = [
    { key: 'MODEL', value: 'small', secret: false },
    { key: 'TOKEN', value: 'hidden', secret: true },
  ];
  await test.control.template({ name: 'vLLM', description: 'Serves a model', mode: ['ssh'], env });
  await test.control.template({ name: 'Desktop', kind: 'vm', mode: ['ssh'] });
});
afterAll(() => test.stop());
beforeEach(async () => {
  renter = await test.control.renter(10_000_000);
  window = await test.open(renter);
  return () => window.close();
});

it('shows what is free, how long the balance lasts with it, and what does not fit and why', async () => {
  const { page } = window;
  await window.goTo('/market');
  const offers = page.locator('main li');
  await offers.nth(1).getByText('your balance lasts').waitFor();
  expect(await offers.allTextContents()).toEqual([
    expect.stringContaining('your balance lasts 8 h 20 min') as string,
    expect.stringContaining('your balance lasts 2 h 13 min') as string,
  ]);
  await window.shoot('market');
  await window.checkAccess();
  await page.selectOption('main >> label:text-is("GPUs") >> xpath=.. >> select', '4');
  await page.waitForURL('**/market?count=4');
  await offers.nth(1).waitFor({ state: 'detached' });
  await page.getByText('1 offer', { exact: true }).waitFor();
  // A number that no offer has any more stays, so that it can be changed.
  await page.goto('/market?count=3');
  await page.getByText('Nothing is free that is like this').waitFor();
  expect(await page.getByLabel('GPUs', { exact: true }).inputValue()).toBe('3');
  await page.getByRole('link', { name: 'Show everything' }).click();
  await offers.nth(1).waitFor();
  await page.selectOption('main >> label:text-is("Template") >> xpath=.. >> select', { label: 'Desktop' });
  await page.waitForSelector('text=Does not fit: the template is a virtual machine, and this machine runs none.');
  expect(await page.locator('main li a').count()).toBe(0);
  await window.shoot('market-misfit');
  await window.checkAccess();
  await page.reload();
  await page.waitForSelector('text=Does not fit');
});

it('deploys by the keyboard alone, with what was typed', async () => {
  const { page } = window;
  await renter.api.post('/v1/ssh-keys', { name: 'laptop', public_key: makePublicKey('-t', 'ed25519') });
  await window.goTo('/market');
  await page.locator('main li a').first().focus();
  await page.keyboard.press('Enter');
  await page.waitForURL('**/deploy?**');
  const typeInto = async (label: string, text: string) => {
    await page.getByLabel(label, { exact: true }).focus();
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.type(text);
  };
  await page.locator('option', { hasText: 'vLLM' }).first().waitFor({ state: 'attached' });
  await page.getByLabel('Template', { exact: true }).focus();
  await page.keyboard.type('vLLM');
  await typeInto('Label', 'train-1');
  await typeInto('Size in GB', '5');
  await page.waitForSelector('text=Give whole gigabytes, from 10 to 20000.');
  await typeInto('Size in GB', '30');
  await typeInto('MODEL', 'large');
  await typeInto('At most, in $', '3.50');
  await page.waitForSelector('aside >> text=$0.003/h');
  await window.shoot('deploy');
  await window.checkAccess();
  const button = page.locator('aside button');
  await page.waitForSelector('aside button:enabled');
  await button.focus();
  await page.keyboard.press('Enter');
  await page.waitForURL('**/instances/*-*');
  const [made] = (await renter.api.get<{ items: { id: string }[] }>('/v1/instances')).items;
  await statusIs(renter.api, made?.id ?? '', 'running');
  await page.waitForSelector('text=ssh -p');
  expect(await renter.api.get(`/v1/instances/${made?.id}`)).toMatchObject({
    ...{ label: 'train-1', disk_gb: 30, max_charge_micro: 3_500_000 },
  });
});

it('says every reason for a refusal, with what lifts it, and has no button that leads to an error', async () => {
  const { page } = window;
  const poor = await test.control.renter(1_000_000);
  const other = await test.open(poor);
  await other.goTo('/market');
  await other.page.locator('main li a').first().click();
  await other.page.getByLabel('Template', { exact: true }).selectOption({ label: 'Desktop (does not fit)' });
  await other.page.waitForSelector('aside >> text=Add money');
  await other.page.waitForSelector('aside >> text=Choose another machine');
  expect(await other.page.locator('aside button').isDisabled()).toBe(true);
  await other.shoot('deploy-refused');
  await other.checkAccess();
  // What lifts it is seen without being asked.
  await other.page.getByLabel('Template', { exact: true }).selectOption({ label: 'vLLM' });
  await other.page.waitForSelector('aside >> text=Choose another machine', { state: 'detached' });
  expect(await other.page.locator('aside button').isDisabled()).toBe(true);
  const credit = { amount_micro: 10_000_000, reason: 'test' };
  await test.control.operator.post(`/v1/operator/organizations/${poor.organizationId}/credits`, credit);
  await other.page.waitForSelector('aside button:enabled');
  await other.close();
  await window.goTo('/deploy');
  await page.waitForSelector('text=Choose a machine first');
});
