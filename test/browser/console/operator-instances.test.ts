import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InstanceBody } from '../../harness/api-client.js';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import { statusIs, type Renter } from '../../harness/control-plane.js';
import type { FakeAgent } from '../../harness/fake-agent.js';

const HOSTILE = '<b onclick=alert(1)>Acme';

let test: TestConsole;
let window: ConsoleWindow;
let templateId: string;
beforeAll(async () => {
  test = await TestConsole.start();
  templateId = await test.control.template();
  const operator = await test.control.renter(0);
  test.control.makeOperator(operator.userId);
  window = await test.open(operator);
});
afterAll(async () => {
  await window.close();
  await test.stop();
});

async function renterOf(name: string): Promise<Renter> {
  const renter = await test.control.renter();
  await renter.api.request('PATCH', '/v1/orgs/current', { name });
  return renter;
}

async function deploy({ api }: Renter, agent: FakeAgent, label: string): Promise<string> {
  const body = { offer_id: await test.control.offer(agent), template_id: templateId, disk_gb: 10, label };
  const { id } = await api.post<InstanceBody>('/v1/instances', body);
  await statusIs(api, id, 'running');
  return id;
}

const table = () => window.page.getByRole('table', { name: 'Instances' });
const labels = async () => {
  const rows = await table().getByRole('rowheader').allInnerTexts();
  return rows.map((text) => text.split('\n')[0]).sort();
};

it('says that nothing is rented, and that nothing is like what was asked for', async () => {
  const { page } = window;
  await window.goTo('/operator/instances');
  await page.getByRole('heading', { name: 'Nothing is rented' }).waitFor();
  await window.checkAccess();
  await page.getByLabel('Status').selectOption('error');
  await page.waitForURL('**?status=error');
  await page.getByText('No instance is like this.').waitFor();
  await page.getByRole('link', { name: 'Show all' }).press('Enter');
  await page.getByRole('heading', { name: 'Nothing is rented' }).waitFor();
});

it('shows the instances of everybody, chosen by filters that are in the address', async () => {
  const { page } = window;
  const [acme, other] = [await renterOf(HOSTILE), await renterOf('Other')];
  const [one, two] = [
    await test.control.host({ name: 'rack-one', gpus: 2 }),
    await test.control.host({ name: 'rack-two', gpus: 2 }),
  ];
  const stopped = await deploy(acme, one, 'stopped');
  await deploy(acme, two, 'train <b>me</b>');
  const waiting = await deploy(other, one, 'waiting');
  await acme.api.post(`/v1/instances/${stopped}/stop`);
  await statusIs(acme.api, stopped, 'stopped');
  one.automatic = false;
  await other.api.post(`/v1/instances/${waiting}/stop`);

  await window.goTo('/operator');
  await page.getByRole('link', { name: 'All instances', exact: true }).press('Enter');
  await expect.poll(labels).toEqual(['stopped', 'train <b>me</b>', 'waiting']);
  await table().getByRole('link', { name: HOSTILE }).first().waitFor();
  await window.checkAccess();
  await window.shoot('operator-instances');
  await page.getByLabel('Status').selectOption('running');
  await page.waitForURL('**?status=running');
  await expect.poll(labels).toEqual(['train <b>me</b>']);
  await page.getByLabel('Status').selectOption('');
  await expect.poll(labels).toHaveLength(3);

  await page.getByRole('searchbox', { name: 'Organization' }).fill('<B ON');
  await page.getByRole('searchbox', { name: 'Organization' }).press('Enter');
  await page.waitForURL(`**?organization=${acme.organizationId}`);
  await expect.poll(labels).toEqual(['stopped', 'train <b>me</b>']);
  await page.getByRole('link', { name: 'only this machine: rack-one' }).press('Enter');
  await page.waitForURL(`**machine=${one.hostId}*`);
  await expect.poll(labels).toEqual(['stopped']);
  await page.reload();
  await page
    .getByLabel('Machine', { exact: true })
    .locator('option', { hasText: 'rack-one' })
    .waitFor({ state: 'attached' });
  await expect.poll(labels).toEqual(['stopped']);
  await window.checkAccess();
  await window.shoot('operator-instances-filtered');
  await page.getByRole('button', { name: 'Take away: Organization' }).press('Enter');
  await expect.poll(labels).toEqual(['stopped', 'waiting']);
  await page.getByLabel('Machine', { exact: true }).selectOption('');
  await expect.poll(labels).toHaveLength(3);
  await page.getByLabel('Only those that wait for their host').check();
  await page.waitForURL('**?waiting=true');
  await expect.poll(labels).toEqual(['waiting']);
  await page.goBack();
  await expect.poll(labels).toHaveLength(3);
});

it('finds an instance by its id, also a destroyed one, and says that there is none', async () => {
  const { page } = window;
  const renter = await renterOf('Finder');
  const id = await deploy(renter, await test.control.host({ name: 'rack-id', gpus: 1 }), 'looked for');
  await test.control.operator.request('DELETE', `/v1/operator/instances/${id}`, { reason: 'abuse' });
  await statusIs(renter.api, id, 'destroyed');
  await window.goTo(`/operator/audit?of=${id}`);
  await page
    .getByRole('table')
    .getByRole('link', { name: `instance ${id}` })
    .press('Enter');
  await page.waitForURL(`**/operator/instances?id=${id}`);
  await expect.poll(labels).toEqual(['looked for']);
  await table().getByText('destroyed').waitFor();
  await table()
    .getByRole('button', { name: `Copy: ${id}` })
    .waitFor();
  expect(await page.getByLabel('Id of an instance').inputValue()).toBe(id);
  await page.getByLabel('Id of an instance').fill(id.slice(0, 8));
  await page.getByLabel('Id of an instance').press('Enter');
  await page.getByText(`No such instance has the id “${id.slice(0, 8)}”.`).waitFor();
});

it('says why it finds no organization', async () => {
  const { page } = window;
  await renterOf('Twin');
  await renterOf('Twins');
  await window.goTo('/operator/instances?status=nonsense&waiting=perhaps');
  await page.waitForURL('**/operator/instances');
  const field = page.getByRole('searchbox', { name: 'Organization' });
  const find = async (text: string) => {
    await field.fill(text);
    await page.getByRole('button', { name: 'Find: Organization' }).click();
  };
  await find('nobody');
  await page.getByText('No name begins with this.').waitFor();
  await find('twi');
  await page.getByText('Several names begin with this').waitFor();
  await window.checkAccess();
  // A name as a whole is that organization, also where another one begins with it.
  await find('twin');
  await page.getByRole('link', { name: 'Twin', exact: true }).waitFor();
  await page.getByText('No instance is like this.').waitFor();
});

it('stops an instance with a reason, and leads to the ignored stops', async () => {
  const { page } = window;
  const renter = await renterOf('Spammer');
  const id = await deploy(renter, await test.control.host({ name: 'rack-three', gpus: 1 }), 'spam');
  await window.goTo(`/operator/instances?organization=${renter.organizationId}`);
  await page.getByRole('button', { name: `Stop: ${id}` }).press('Enter');
  await page.getByRole('dialog').getByLabel('Reason').fill('it sends spam');
  await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click();
  await statusIs(renter.api, id, 'stopped');
  await page.getByRole('link', { name: 'Ignored stops' }).press('Enter');
  await page.getByText('No stop was ignored').waitFor();
  await page
    .getByRole('navigation', { name: 'Instances of everybody' })
    .getByRole('link', { name: 'All' })
    .press('Enter');
  await expect.poll(labels).toContain('spam');
});

it('shows why the list cannot be read, and reads it again', async () => {
  const { page } = window;
  window.expectComplaints(/503/);
  const path = '**/v1/operator/instances?*';
  await page.route(path, (route) =>
    route.fulfill({ status: 503, json: { code: 'INTERNAL_ERROR', message: 'the disk is full', request_id: 'r1' } }),
  );
  await window.goTo('/operator/instances?status=stopped');
  const alert = page.locator('main').getByRole('alert');
  await alert.getByText('the disk is full').waitFor();
  await window.checkAccess();
  await page.unroute(path);
  await alert.getByRole('button', { name: 'Try again' }).click();
  await expect.poll(labels).toContain('spam');
});
