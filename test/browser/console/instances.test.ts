import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { InstanceBody } from '../../harness/api-client.js';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import { statusIs, type Renter } from '../../harness/control-plane.js';
import type { FakeAgent } from '../../harness/fake-agent.js';

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
  await page.waitForSelector('text=Your first instance');
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
  await window.shoot('instances');
  await window.checkAccess();
});

it('tells of one instance how it is, what it wrote, what it cost and how to reach it', async () => {
  const { page } = window;
  const { id } = await deploy('train-2', { idle_stop_minutes: 60 });
  await statusIs(renter.api, id, 'running');
  test.control.advance(60_000);
  await window.goTo(`/instances/${id}`);
  await page.waitForSelector('ol > li >> nth=1');
  await window.shoot('instance-timeline');
  await window.checkAccess();
  await page.click('nav >> text=Logs');
  await page.waitForSelector('text=The workload has written nothing yet');
  agent.print(id, 'one', '\u001b[31mred\u001b[0m <b>two</b>');
  await page.waitForSelector('[role=log]:has-text("red <b>two</b>")');
  expect(await page.textContent('[role=log]')).toBe('one\nred <b>two</b>');
  await window.shoot('instance-logs');
  await page.click('nav >> text=Usage');
  await page.waitForSelector('text=Nothing was measured in this time');
  await page.click('nav >> text=Cost');
  await page.waitForURL('**?tab=cost');
  await page.goBack();
  await page.goForward();
  await page.waitForSelector('main >> text=/charged/');
  await window.shoot('instance-cost');
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

it('says what is wrong where there is no such instance', async () => {
  window.expectComplaints(/404/);
  await window.page.goto('/instances/0b8f6a3e-3c1d-4a53-8f59-0e6f8b3c2d11');
  await window.page.waitForSelector('[role=alert] >> text=INSTANCE_NOT_FOUND');
});
