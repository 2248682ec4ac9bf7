import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../../scripts/eventually.js';
import type { InstanceBody } from '../../harness/api-client.js';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import { statusIs, type Renter } from '../../harness/control-plane.js';
import type { FakeAgent } from '../../harness/fake-agent.js';

let test: TestConsole;
let window: ConsoleWindow;
let renter: Renter;
let agent: FakeAgent;
beforeAll(async () => {
  test = await TestConsole.start();
  renter = await test.control.renter();
  agent = await test.control.host({ name: 'rack-lost', gpus: 3 });
  await test.control.host({ name: 'rack-other', gpus: 1 });
  const operator = await test.control.renter(0);
  test.control.makeOperator(operator.userId);
  window = await test.open(operator);
});
afterAll(async () => {
  await window.close();
  await test.stop();
});

async function deploy(offer_id: string, template_id: string): Promise<string> {
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', { offer_id, template_id, disk_gb: 10 });
  await statusIs(renter.api, id, 'running');
  return id;
}

const isConnected = async () =>
  (await test.control.operator.get<{ connected: boolean }>(`/v1/operator/machines/${agent.hostId}`)).connected;
const header = (words: string) => window.page.locator('main header').getByText(words, { exact: true });

it('finds a machine by the beginning of its name, in the address of the page', async () => {
  const { page } = window;
  await window.goTo('/operator/machines');
  const names = () =>
    page.getByRole('table', { name: 'Machines' }).getByRole('rowheader').getByRole('link').allInnerTexts();
  await expect.poll(async () => (await names()).length).toBe(2);
  const field = page.getByLabel('Name or id');
  await field.fill('RACK-l');
  await field.press('Enter');
  await page.waitForURL('**?find=RACK-l');
  await expect.poll(names).toEqual(['rack-lost']);
  await page.reload();
  await expect.poll(names).toEqual(['rack-lost']);
  await page.getByRole('link', { name: 'With an old agent' }).press('Enter');
  await page.getByText('No machine is like this: a name that begins with “RACK-l”, an old agent.').waitFor();
  await window.checkAccess();
  await page.getByRole('link', { name: 'Show all machines' }).press('Enter');
  await expect.poll(async () => (await names()).length).toBe(2);
  await field.fill(agent.hostId);
  await field.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'rack-lost' }).waitFor();
});

it('shows what is rented while a machine is away, declares it lost, and shows it come back', async () => {
  const { page } = window;
  const [offerId, templateId] = [await test.control.offer(agent), await test.control.template()];
  const [running, stopped] = [await deploy(offerId, templateId), await deploy(offerId, templateId)];
  await renter.api.post(`/v1/instances/${stopped}/stop`);
  await statusIs(renter.api, stopped, 'stopped');
  agent.disconnect();
  await eventually('the machine to be away', async () => !(await isConnected()));

  // The stopped instance keeps its GPU, too.
  const soldOf = (label: string, name: string) =>
    page.getByRole('table', { name: label }).getByRole('row').filter({ hasText: name });
  await window.goTo('/operator/machines');
  await soldOf('Machines', 'rack-lost').getByText('2 of 3').waitFor();
  await window.goTo('/operator');
  await expect
    .poll(() => soldOf('GPUs by model', 'Fake GPU').getByRole('cell').allInnerTexts())
    .toEqual(['2', '1', '0', '1', '0', '4']);

  await window.goTo(`/operator/machines/${agent.hostId}`);
  await header('away').waitFor();
  expect(await page.getByRole('list', { name: 'GPUs' }).getByText('sold', { exact: true }).count()).toBe(2);
  await page.getByRole('button', { name: 'Declare lost' }).press('Enter');
  const question = page.getByRole('alertdialog');
  await question.getByText('Declare rack-lost lost: its instances end').waitFor();
  await window.checkAccess();
  await window.shoot('operator-lost');
  await question.getByRole('button', { name: 'Declare lost' }).press('Enter');
  await header('lost').waitFor();
  await page.getByRole('button', { name: 'Declare lost' }).waitFor({ state: 'detached' });
  await page.getByRole('table', { name: 'Instances' }).getByText('workload_lost').waitFor();
  expect(await statusIs(renter.api, running, 'error')).toMatchObject({ error_code: 'workload_lost' });
  expect(await statusIs(renter.api, stopped, 'stopped')).toMatchObject({ error_code: 'disk_gone' });

  await agent.connect();
  await header('connected, cordoned').waitFor();
  await page.getByRole('button', { name: 'Uncordon', exact: true }).press('Enter');
  await question.getByRole('button', { name: 'Uncordon' }).press('Enter');
  await header('connected').waitFor();
  await renter.api.post(`/v1/instances/${stopped}/start`);
  await statusIs(renter.api, stopped, 'running');
  expect(await statusIs(renter.api, running, 'error')).toMatchObject({ error_code: 'workload_lost' });
});
