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
    expect.stringContaining('your balance lasts 8\u00a0h\u00a020\u00a0min') as string,
    expect.stringContaining('your balance lasts 2\u00a0h\u00a013\u00a0min') as string,
  ]);
  await window.shoot('market');
  await window.checkAccess();
  await page.selectOption('main >> label:text-is("GPUs") >> xpath=.. >> select', '4');
  await page.waitForURL('**/market?count=4');
  await offers.nth(1).waitFor({ state: 'detached' });
  await page.getByText('1 offer', { exact: true }).waitFor();
  await page.goBack();
  await page.waitForURL('**/market');
  await page.goForward();
  await page.waitForURL('**/market?count=4');
  // A number that no offer has any more stays, so that it can be changed.
  await page.goto('/market?count=3');
  await page.getByText('Nothing is free that is like this').waitFor();
  expect(await page.getByLabel('GPUs', { exact: true }).inputValue()).toBe('3');
  await page.getByRole('link', { name: 'Show everything' }).click();
  await offers.nth(1).waitFor();
  await page.selectOption('main >> label:text-is("Template") >> xpath=.. >> select', {
    label: 'Desktop (by the operator)',
  });
  await page.waitForSelector('text=Does not fit: the template is a virtual machine, and this machine runs none.');
  expect(await page.locator('main li a').count()).toBe(0);
  await window.shoot('market-misfit');
  await window.checkAccess();
  await page.reload();
  await page.waitForSelector('text=Does not fit');
});

it('deploys with what was typed', async () => {
  const { page } = window;
  await renter.api.post('/v1/ssh-keys', { name: 'laptop', public_key: makePublicKey('-t', 'ed25519') });
  await window.goTo('/market');
  const deploy = page.locator('main li a').first();
  await deploy.waitFor();
  await deploy.focus();
  await page.keyboard.press('Enter');
  await page.waitForURL('**/deploy?**');
  // The market has a choice of a template, too, and stays until this page is loaded.
  await page.getByRole('heading', { name: 'Deploy', exact: true }).waitFor();
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
    label: 'train-1',
    disk_gb: 30,
    max_charge_micro: 35e5,
  });
});

it('says every reason for a refusal, with what lifts it, and has no button that leads to an error', async () => {
  const poor = await test.control.renter(1_000_000);
  const other = await test.open(poor);
  await other.goTo('/market');
  await other.page.locator('main li a').first().click();
  await other.page
    .getByLabel('Template', { exact: true })
    .selectOption({ label: 'Desktop (does not fit; by the operator)' });
  await other.page.waitForSelector('aside >> text=Add money');
  await other.page.waitForSelector('aside >> text=Choose another machine');
  expect(await other.page.locator('aside button').isDisabled()).toBe(true);
  await other.shoot('deploy-refused');
  await other.checkAccess();
  // What lifts it is seen without being asked.
  await other.page.getByLabel('Template', { exact: true }).selectOption({ label: 'vLLM (by the operator)' });
  await other.page.waitForSelector('aside >> text=Choose another machine', { state: 'detached' });
  expect(await other.page.locator('aside button').isDisabled()).toBe(true);
  const credit = { amount_micro: 10_000_000, reason: 'test' };
  await test.control.operator.post(`/v1/operator/organizations/${poor.organizationId}/credits`, credit);
  await other.page.waitForSelector('aside button:enabled');
  await other.close();
});

it('ranks machines for the template, page by page, and keeps what was typed when either changes', async () => {
  const { page } = window;
  const desktops = await test.control.host({ gpus: 1, name: 'desktops', vmCapable: true });
  for (let more = 0; more < 11; more += 1) await test.control.offer(desktops, 1, 9_000_000 + more);
  window.expectComplaints(/404/);
  await window.goTo(`/deploy?offer=${desktops.hostId}`);
  await page.waitForSelector('main >> text=no offer has this id');
  await page.getByRole('link', { name: 'Choose another machine' }).waitFor();
  const reads: URL[] = [];
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (url.pathname === '/v1/offers') reads.push(url);
  });
  await window.goTo('/deploy');
  const machines = page.locator('main li');
  await machines.nth(9).waitFor();
  expect(await machines.first().textContent()).toContain('$1.20/h');
  await page.getByLabel('Template', { exact: true }).selectOption({ label: 'Desktop (by the operator)' });
  await page.waitForSelector('main li:first-child >> text=desktops');
  expect(await machines.count()).toBe(10);
  expect(await page.getByText('Does not fit').count()).toBe(0);
  await page.getByRole('button', { name: 'Show more machines' }).click();
  await page.waitForSelector('main li:nth-child(13) >> text=Does not fit: the template is a virtual machine');
  expect(await machines.count()).toBe(13);
  expect(await machines.getByRole('link').count()).toBe(11);
  expect(reads.filter(({ searchParams }) => searchParams.get('limit') !== '10')).toEqual([]);
  await window.shoot('deploy-machines');
  await window.checkAccess();

  const typed = { Label: 'mine', 'Size in GB': '33', 'At most, in $': '4' };
  for (const [label, text] of Object.entries(typed)) await page.getByLabel(label, { exact: true }).fill(text);
  await page.getByRole('button', { name: 'Add a variable' }).click();
  await page.getByLabel('Name', { exact: true }).fill('TOKEN');
  await page.getByLabel('Secret').check();
  await page.getByLabel('Value', { exact: true }).fill('hush-hush');
  const expectTyped = async () => {
    for (const [label, text] of Object.entries(typed))
      expect(await page.getByLabel(label, { exact: true }).inputValue(), label).toBe(text);
  };
  await machines.first().getByRole('link').click();
  await page.waitForURL('**/deploy?**offer=**');
  await page.waitForSelector('aside button:enabled');
  expect(await machines.count()).toBe(1);
  await expectTyped();
  // Beside the rail of a small window the machine keeps its width: its price and what can be done stand below it.
  const whole = page.viewportSize() ?? { width: 1_440, height: 900 };
  await page.setViewportSize({ width: 800, height: 900 });
  expect((await machines.locator('p').first().boundingBox())?.width).toBeGreaterThan(400);
  await page.setViewportSize(whole);
  await page.getByLabel('Template', { exact: true }).selectOption({ label: 'vLLM (by the operator)' });
  await page.getByLabel('MODEL').waitFor();
  await expectTyped();
  await page.getByRole('link', { name: 'Choose another machine' }).click();
  await machines.nth(9).waitFor();
  await page.goBack();
  await page.getByRole('link', { name: 'Choose another machine' }).waitFor();
  await expectTyped();
  // A choice of a template is gone back over, too.
  await page.goBack();
  await page.getByLabel('MODEL').waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'Choose another machine' }).waitFor();
  expect(await page.locator('option:checked', { hasText: 'Desktop' }).count()).toBe(1);
  await expectTyped();
  await page.goForward();
  await page.getByLabel('MODEL').waitFor();
  await expectTyped();
  // As on the way to a proof and back.
  await page.reload();
  await page.getByLabel('MODEL').waitFor();
  await expectTyped();
  expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('TOKEN');
  expect(await page.getByLabel('Value', { exact: true }).inputValue()).toBe('');
  const stored = await page.evaluate<string>('JSON.stringify({ ...sessionStorage })');
  expect(stored).toContain('mine');
  expect(stored).not.toContain('hush-hush');
});

it('asks again what it costs, and takes no price that was not shown', async () => {
  const { page } = window;
  const offer = await test.control.offer(agent, 1, 2_000_000);
  const reprice = (price: number) =>
    test.control.operator.request('PATCH', `/v1/operator/offers/${offer}`, { price_per_hour_micro: price });
  const template = (await renter.api.get<{ items: { id: string; name: string }[] }>('/v1/templates')).items.find(
    ({ name }) => name === 'vLLM',
  );
  await page.clock.install();
  await window.goTo(`/deploy?offer=${offer}&template=${template?.id}`);
  await page.waitForSelector('aside >> text=$2.00/h');
  await page.clock.runFor(5_000);
  await page.waitForSelector('aside >> text=/As of \\d+ s ago/');
  // It is cheaper: that needs nobody's word.
  await reprice(1_900_000);
  await page.clock.runFor(20_000);
  await page.waitForSelector('aside >> text=$1.90/h');
  await page.waitForSelector('aside button:enabled');
  // It has become dearer than what was shown first.
  await reprice(2_500_000);
  await page.clock.runFor(20_000);
  await page.waitForSelector('aside >> text=The price has risen. It was $2.00/h');
  expect(await page.getByRole('button', { name: 'Deploy' }).isDisabled()).toBe(true);
  await window.shoot('deploy-risen');
  await window.checkAccess();
  await page.getByRole('button', { name: 'Go on at the new price' }).click();
  await page.waitForSelector('aside button:enabled');
  // It rises between the last look and the click.
  window.expectComplaints(/409/);
  let lookAgain = () => {};
  const looks = new Promise<void>((resolve) => (lookAgain = resolve));
  await page.route('**/v1/instances/estimate', (route) => looks.then(() => route.continue()).catch(() => undefined));
  await reprice(3_000_000);
  await page.getByRole('button', { name: 'Deploy' }).click();
  await page.waitForSelector('aside >> text=OFFER_TOO_EXPENSIVE');
  // Another machine is chosen on this page, so that what was typed stays.
  const another = page.locator('aside [role=alert]').getByRole('link', { name: 'Choose another machine' });
  expect(await another.getAttribute('href')).toBe(`/deploy?template=${template?.id}`);
  lookAgain();
  await page.waitForSelector('aside >> text=The price has risen. It was $2.50/h');
  expect((await renter.api.get<{ items: unknown[] }>('/v1/instances')).items).toEqual([]);
  await page.getByRole('button', { name: 'Go on at the new price' }).click();
  // What happens to the organization is seen without waiting.
  const credit = { amount_micro: 5_000_000, reason: 'test' };
  await test.control.operator.post(`/v1/operator/organizations/${renter.organizationId}/credits`, credit);
  await page.waitForSelector('aside >> text=$15.00');
  await page.waitForSelector('aside button:enabled');
  await page.getByRole('button', { name: 'Deploy' }).click();
  await page.waitForURL('**/instances/*-*');
});
