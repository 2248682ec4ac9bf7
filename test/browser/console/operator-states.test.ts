import { afterAll, beforeAll, it } from 'vitest';
import { TestConsole } from '../../harness/console.js';
import { operatorsPages, PHONE, visitAll, visitWhileFailing, type PageIds } from '../../harness/console-pages.js';
import { statusIs, type Renter } from '../../harness/control-plane.js';
import { growFleet, MACHINE_ID, ORGANIZATION_ID, type FleetSize } from '../../harness/large-fleet.js';
import { grownBy } from '../../harness/grown-store.js';
import type { InstanceBody } from '../../harness/api-client.js';

/** 25 of everything. */
const SIZE: FleetSize = {
  ...{ machines: 25, organizations: 25, instances: 200, commands: 25, quarantined: 25 },
  ...{ ignored: 25, credited: 25, templates: 25 },
  ...{ disputes: 25, suspended: 0, acts: 25, days: 30 },
};

let test: TestConsole;
let operator: Renter;
beforeAll(async () => {
  test = await TestConsole.start();
  operator = await test.control.renter(0);
  test.control.makeOperator(operator.userId);
});
afterAll(() => test.stop());

const open = () => test.open(operator, { width: PHONE });

it('has every page for operators while there is nothing, with one of everything, then with 25', async () => {
  const window = await open();
  await visitAll(window, operatorsPages({}));
  const ids = await makeOne();
  await visitAll(window, operatorsPages(ids));
  const { store } = test.control.core.platform;
  store.transact((tx) => growFleet(grownBy(tx), SIZE, tx.now));
  for (let number = 2; number <= 25; number++) await test.control.template({ name: `vLLM ${number}` });
  await visitAll(window, operatorsPages({ ...ids, machine: MACHINE_ID, organization: ORGANIZATION_ID }));
  await window.close();
});

/** The only host, renter and instance, whose copies are all others. */
async function makeOne(): Promise<PageIds> {
  const { control } = test;
  const agent = await control.host({ gpus: 8 });
  const renter = await control.renter();
  await renter.api.request('PATCH', '/v1/orgs/current', { name: 'an organization' });
  const systemTemplate = await control.template({ name: 'vLLM' });
  const body = { offer_id: await control.offer(agent), template_id: systemTemplate, disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  return { machine: agent.hostId, organization: renter.organizationId, systemTemplate };
}

const all = () => operatorsPages({ machine: MACHINE_ID, organization: ORGANIZATION_ID });

it('says on every page for operators what has failed, keeps its layout, and goes on when it works again', async () => {
  const window = await open();
  await visitWhileFailing(window, all(), /\/v1\/operator/);
  await window.close();
});

it('says on every page for operators when the browser is offline, keeps what it shows, and goes on once it is back', async () => {
  const window = await open();
  const { page, context } = window;
  window.expectComplaints(/ERR_INTERNET_DISCONNECTED|ERR_ABORTED|Failed to load resource/);
  for (const address of all()) {
    await visitAll(window, [address]);
    await page.waitForSelector('[data-connection=live]', { state: 'attached' });
    await context.setOffline(true);
    await page.getByText('Your browser is offline since').waitFor();
    await page.getByRole('heading', { name: address.heading }).first().waitFor();
    await context.setOffline(false);
    await page.getByText('Your browser is offline since').waitFor({ state: 'detached' });
    await page.waitForSelector('[data-connection=live]', { state: 'attached' });
  }
  await window.close();
});
