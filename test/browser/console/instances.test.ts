import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { eventually } from '../../../scripts/eventually.js';
import type { InstanceBody } from '../../harness/api-client.js';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import { statusIs, type Renter } from '../../harness/control-plane.js';
import type { FakeAgent } from '../../harness/fake-agent.js';
import { makePublicKey } from '../../harness/keys.js';
import { openUntilRest } from '../../harness/page-visit.js';

const HOSTILE = '<img src=x onerror=alert(1)> "quoted" Donaudampfschifffahrts';

let test: TestConsole;
let agent: FakeAgent;
let offer_id: string;
let template_id: string;
let renter: Renter;
let window: ConsoleWindow;

beforeAll(async () => {
  test = await TestConsole.start();
  agent = await test.control.host({ gpus: 8 });
  offer_id = await test.control.offer(agent, 1, 1_200_000);
  template_id = await test.control.template({ name: 'vLLM', mode: ['ssh'] });
});
afterAll(() => test.stop());
beforeEach(async () => {
  renter = await test.control.renter();
  window = await test.open(renter);
  return () => window.close();
});

const deploy = (label: string, fields: object = {}) =>
  renter.api.post<InstanceBody>('/v1/instances', { offer_id, template_id, disk_gb: 20, label, ...fields });

it('reads nothing of each instance by itself to list them', async () => {
  const own = await test.control.host({ gpus: 2 });
  for (const label of ['train-1', 'train-2']) {
    const { id } = await deploy(label, { offer_id: await test.control.offer(own) });
    await statusIs(renter.api, id, 'running');
  }
  const asked = await openUntilRest(window.page, '/instances');
  await window.page.waitForSelector('main li >> nth=1');
  const paths = asked.map((request) => new URL(request.url()).pathname);
  expect(paths).toContain('/v1/instances');
  expect(paths.filter((path) => /[0-9a-f]{8}-/.test(path))).toEqual([]);
});

it('shows an instance from its deploy to its end as it happens, with the SSH command to copy', async () => {
  const { page, context } = window;
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await window.goTo('/instances');
  await page.waitForSelector('text=Your first instance');
  const { id } = await deploy('train-1');
  const { ssh_host, ssh_port } = await statusIs(renter.api, id, 'running');
  const command = `ssh -p ${ssh_port} root@${ssh_host}`;
  await page.waitForSelector(`text=${command}`);
  await page.click('main button:text-is("Copy")');
  await page.waitForSelector('text=Copied');
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(command);
  expect(await page.textContent('main li')).toContain('$1.20/h');
  // Exactly what the API allows.
  const buttons = await page.locator('main li button:has-text("train-1")').allTextContents();
  expect(buttons).toEqual(['Stop train-1', 'Destroy train-1']);
  await page.click('text=Stop');
  const stop = page.getByRole('alertdialog', { name: 'Stop train-1' });
  await stop.getByText('Stopping ends the running work.').waitFor();
  await stop.getByText('The GPUs stay reserved').waitFor();
  expect((await renter.api.get<InstanceBody>(`/v1/instances/${id}`)).status).toBe('running');
  await stop.getByRole('button', { name: 'Stop' }).click();
  await page.waitForSelector('h2:text-is("Stopped")');
  await page.click('text=Start');
  await page.waitForSelector('h2:text-is("Running")');
  await page.click('text=Destroy');
  await page.waitForSelector('text=Destroy train-1 and its 20 GB disk');
  await window.checkAccess();
  await page.keyboard.press('Escape');
  expect((await renter.api.get<InstanceBody>(`/v1/instances/${id}`)).status).toBe('running');
  await page.click('text=Destroy');
  await page.click('[role=alertdialog] button:text-is("Destroy")');
  await page.waitForSelector('text=Nothing is rented now');
  await page.click('text=Show destroyed instances');
  await page.waitForURL('**/instances?need=destroyed');
  await page.getByRole('listitem').filter({ hasText: 'train-1' }).waitFor();
});

it('shows what failed first and why, and runs nothing that a name contains', async () => {
  const { page } = window;
  const [failed, running] = [await deploy(HOSTILE), await deploy('good')];
  await statusIs(renter.api, failed.id, 'running');
  await statusIs(renter.api, running.id, 'running');
  agent.exit(failed.id, { code: 137, outOfMemory: true, lastLines: ['<script>alert(2)</script>'] });
  await statusIs(renter.api, failed.id, 'error');
  await window.goTo('/instances');
  expect(await page.locator('main h2').allTextContents()).toEqual(['Failed: look at these', 'Running']);
  expect(await page.textContent('main li')).toContain(HOSTILE);
  expect(await page.textContent('main li')).toContain('memory');
  await page
    .getByText(/1 × .+, /)
    .first()
    .waitFor();
  await page.getByText(/^Destroyed in \d+ h$/).waitFor();
  await window.shoot('instances');
  await window.checkAccess();
  // However long one of them is, amounts stand below each other.
  await page.evaluate(`document.querySelector('main li dl > :last-child dd').textContent = '$12345.123456'`);
  const lefts = await page.evaluate<number[]>(
    `[...document.querySelectorAll('main li dl')].map((each) => each.getBoundingClientRect().left)`,
  );
  expect(new Set(lefts).size).toBe(1);
  await page.getByRole('link', { name: HOSTILE }).click();
  await page.getByRole('heading', { name: 'It cannot be started again' }).waitFor();
  expect(await page.getByRole('heading', { name: 'Connect' }).count()).toBe(0);
  // The time of the destruction is in words of the control plane, and shown as other times are.
  await page.locator('main ol li time >> nth=1').waitFor();
  expect(await page.textContent('main ol')).not.toMatch(/\dT\d\d:/);
  await page.getByRole('link', { name: 'Deploy it again' }).click();
  await page.waitForURL(`**/deploy?offer=${offer_id}&template=${template_id}`);
});

it('tells of one instance how it is, what it wrote, what it cost and how to reach it', async () => {
  const { page } = window;
  const key = await renter.api.post<{ id: string }>('/v1/ssh-keys', {
    name: 'laptop',
    public_key: makePublicKey('-t', 'ed25519'),
  });
  const { id } = await deploy('train-2', { idle_stop_minutes: 60, ssh_key_id: key.id });
  await statusIs(renter.api, id, 'running');
  for (let passed = 0; passed < 3; passed++) {
    test.control.advance(30_000);
    await agent.speak(id);
    test.control.advance(0);
  }
  await window.goTo(`/instances/${id}`);
  await page.waitForSelector('ol > li >> nth=1');
  const factOf = (name: string) => page.locator('dl > div').filter({ hasText: name }).locator('dd').textContent();
  await page.getByText(/^1 × /).waitFor();
  expect([await factOf('Stopped when idle for'), await factOf('By its schedule')]).toEqual(['60 min', 'nothing']);
  await page.getByRole('button', { name: 'Replace the access' }).click();
  const replacing = page.getByRole('dialog', { name: 'Replace the access of train-2' });
  await replacing.getByLabel('SSH key from now on').selectOption({ label: 'laptop' });
  await replacing.getByRole('button', { name: 'Replace' }).click();
  await page.getByText('The access was replaced.').waitFor();
  await window.shoot('instance-timeline');
  await window.checkAccess();
  await page.click('nav >> text=Logs');
  await page.waitForSelector('text=The workload has written nothing yet');
  agent.print(id, 'one', '\u001b[31mred\u001b[0m <b>two</b>');
  await page.waitForSelector('[role=log]:has-text("red <b>two</b>")');
  expect(await page.textContent('[role=log]')).toBe('one\nred <b>two</b>');
  agent.print(
    id,
    'a\u001b(B\u001b_Gpicture',
    'its middle',
    '\u001b\\b\u009b1mc \u202ed',
    'e\u001bP',
    'f'.repeat(5_000),
    'last',
  );
  await page.waitForSelector('[role=log]:has-text("last")');
  const [first, middle, rest, before, bounded] = (await page.textContent('[role=log]'))?.split('\n').slice(2) ?? [];
  expect([first, middle, rest, before]).toEqual(['a', '', 'bc \\u{202e}d', 'e']);
  expect(bounded).toMatch(/^f{800,1000}$/);
  await window.shoot('instance-logs');
  await page.click('nav >> text=Usage');
  await page.waitForSelector('text=Nothing was measured in this time');
  await page.click('nav >> text=Cost');
  await page.waitForURL('**?tab=cost');
  await page.goBack();
  await page.waitForURL('**?tab=usage');
  await page.goForward();
  await page.getByText('Charged so far').waitFor();
  const runs = page.getByRole('table', { name: 'Runs' });
  expect(await runs.getByRole('columnheader').allTextContents()).toEqual(
    expect.arrayContaining(['Began', 'Ended', 'Rate', 'Charge']),
  );
  expect(await runs.locator('tbody').textContent()).toContain('$1.20/h');
  await window.shoot('instance-cost');
});

it('says once why the output is not read, asks ever later, and takes it for no empty output', async () => {
  const { page } = window;
  window.expectComplaints(/500/);
  const { id } = await deploy('silent');
  await statusIs(renter.api, id, 'running');
  let asked = 0;
  await page.route('**/logs?**', (route) => {
    const failure = { code: 'INTERNAL', message: 'something went wrong', request_id: `request-${++asked}` };
    return route.fulfill({ status: 500, json: failure });
  });
  await page.clock.install();
  await window.goTo(`/instances/${id}?tab=logs`);
  const alert = page.locator('main [role=alert]');
  await alert.getByText('request-1').waitFor();
  for (let second = 0; second < 60; second++) await page.clock.runFor(1_000);
  await eventually('another read', () => asked > 1);
  // Without a failure it asks twenty times in a minute.
  expect(asked).toBeLessThan(6);
  expect(await alert.textContent()).toMatch(/request request-1\D*$/);
  expect(await page.getByText('The workload has written nothing yet').count()).toBe(0);
  await window.checkAccess();
  await page.unroute('**/logs?**');
  agent.print(id, 'at last');
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.waitForSelector('[role=log]:has-text("at last")');
  await alert.waitFor({ state: 'detached' });
});

it('keeps of a long output what a browser shows without effort: the newest million characters', async () => {
  const { page } = window;
  const { id } = await deploy('loud');
  const lines = Array.from({ length: 1_000 }, (_, index) => `${index} `.padEnd(1_100, 'x'));
  await page.route('**/logs?**', (route) =>
    route.fulfill({ json: { lines, next_after: 'later', lines_missed: false } }),
  );
  await window.goTo(`/instances/${id}?tab=logs`);
  const log = page.getByRole('log');
  const kept = ((await log.textContent()) ?? '').split('\n');
  expect(kept.at(-1)).toBe(lines.at(-1));
  expect(kept.length).toBe(Math.floor(1_000_000 / 1_101));
});

it('changes label, limits and schedule, and says what is wrong with a limit', async () => {
  const { page } = window;
  const { id } = await deploy('train-3');
  await statusIs(renter.api, id, 'running');
  await window.goTo(`/instances/${id}?tab=settings`);
  await page.fill('text=At most, in $', 'a lot');
  await page.waitForSelector('text=Give an amount above zero, such as 12.50.');
  await page.fill('text=At most, in $', '12.345678');
  await page.fill('main >> label:text-is("Label")', 'renamed');
  await page.click('text=Save the label and the limits');
  await page.waitForSelector('h1:text-is("renamed")');
  expect(await renter.api.get(`/v1/instances/${id}`)).toMatchObject({ label: 'renamed', max_charge_micro: 12_345_678 });
  await page.click('text=Add a time');
  await page.click('text=Save the schedule');
  await page.waitForSelector('text=Next: stop');
  await window.shoot('instance-settings');
  await window.checkAccess();
});

it('acts on several at once: names what follows, shows how each has answered, and has an address for what is shown', async () => {
  const { page } = window;
  const made = [await deploy('train-1'), await deploy('train-2'), await deploy('serve')];
  for (const { id } of made) await statusIs(renter.api, id, 'running');
  const statuses = async () =>
    (await renter.api.get<{ items: InstanceBody[] }>('/v1/instances')).items
      .map(({ label, status }) => `${String(label)}: ${status}`)
      .sort();
  await window.goTo('/instances');
  await page.getByLabel('Label or template').fill('train');
  await page.waitForURL('**/instances?words=train');
  await page.getByLabel('Grouped by').selectOption('label');
  await page.waitForURL('**/instances?words=train&by=label');
  await page.reload();
  await page.waitForSelector('h2:text-is("train-2")');
  expect(await page.locator('main h2').allTextContents()).toEqual(['train-1', 'train-2']);
  await page.getByLabel('Select all 2 shown').check();
  await window.shoot('instances-several');
  await window.checkAccess();
  // One of the two is refused; the other one is stopped all the same.
  window.expectComplaints(/409/);
  await page.route(`**/v1/instances/${made[1]?.id}/stop`, (route) =>
    route.fulfill({
      status: 409,
      contentType: 'application/json',
      body: JSON.stringify({ code: 'INVALID_STATE', message: 'it cannot be stopped now', request_id: 'request-1' }),
    }),
  );
  await page.getByRole('button', { name: 'Stop 2' }).click();
  const asked = page.getByRole('alertdialog', { name: 'Stop 2 instances' });
  await asked.getByText('Their disks stay, for $0.004/h together').waitFor();
  await window.shoot('instances-several-stop');
  await asked.getByRole('button', { name: 'Stop' }).click();
  await page.getByText('Stop: 1 of 2 accepted, 1 refused').waitFor();
  await page.getByRole('listitem').filter({ hasText: 'it cannot be stopped now' }).getByText('train-2').waitFor();
  await window.shoot('instances-several-outcome');
  await page.getByRole('button', { name: 'I have read it' }).click();
  await statusIs(renter.api, made[0]?.id ?? '', 'stopped');
  expect(await statuses()).toEqual(['serve: running', 'train-1: stopped', 'train-2: running']);
  await page.getByLabel('Select all 2 shown').check();
  await page.getByRole('button', { name: 'Destroy 2' }).press('Enter');
  const destroying = page.getByRole('alertdialog', { name: 'Destroy 2 instances and 40 GB of disk' });
  await destroying.getByText('1 of them runs now').waitFor();
  await destroying.getByRole('button', { name: 'Destroy' }).click();
  await page.getByText('Destroy: 2 of 2 accepted').waitFor();
  await page.getByText('No instance is like this').waitFor();
  expect(await statuses()).toEqual(['serve: running']);
});

it('says what is wrong where there is no such instance', async () => {
  window.expectComplaints(/404/);
  await window.page.goto('/instances/0b8f6a3e-3c1d-4a53-8f59-0e6f8b3c2d11');
  await window.page.waitForSelector('[role=alert] >> text=INSTANCE_NOT_FOUND');
});
