import { afterAll, beforeAll, describe, it } from 'vitest';
import type { InstanceBody } from '../../harness/api-client.js';
import { setCompany } from '../../harness/companies.js';
import { isNight } from '../../harness/at-night.js';
import { TestConsole } from '../../harness/console.js';
import { furtherPerRoute, onePerRoute, operatorsPages, type PageIds } from '../../harness/console-pages.js';
import { loadAll, PHONE, visitAll, visitAnew, visitOffline, visitWhileFailing } from '../../harness/console-visits.js';
import { statusIs, type Renter } from '../../harness/control-plane.js';
import { grownBy } from '../../harness/grown-store.js';
import { growFleet, MACHINE_ID, ORGANIZATION_ID, type FleetSize } from '../../harness/large-fleet.js';

/** 25 of everything. */
const SIZE: FleetSize = {
  machines: 25,
  organizations: 25,
  instances: 200,
  commands: 25,
  quarantined: 25,
  ignored: 25,
  credited: 25,
  templates: 25,
  payments: 25,
  disputes: 25,
  suspended: 0,
  acts: 25,
  days: 30,
};

let test: TestConsole;
let operator: Renter;
beforeAll(async () => {
  test = await TestConsole.start();
  operator = await makeOperator(test);
});
afterAll(() => test.stop());

async function makeOperator({ control }: TestConsole): Promise<Renter> {
  const made = await control.renter(0);
  control.makeOperator(made.userId);
  return made;
}

const open = () => test.open(operator, { width: PHONE });

it('has every page for operators while there is nothing', async () => {
  const empty = await TestConsole.start();
  const window = await empty.open(await makeOperator(empty), { width: PHONE });
  await visitAll(window, operatorsPages({}));
  await window.close();
  await empty.stop();
});

describe('with one of everything', () => {
  let ids: PageIds;
  beforeAll(async () => {
    ids = await makeOne();
  });

  // With one row in each list, pages are those with 25.
  if (isNight)
    it('has every page for operators', async () => {
      const window = await open();
      await visitAll(window, operatorsPages(ids));
      await window.close();
    });

  describe('and then 25', () => {
    beforeAll(async () => {
      await makeMore();
      ids = { ...ids, machine: MACHINE_ID, organization: ORGANIZATION_ID };
    });

    it('has every tab for operators', async () => {
      const window = await open();
      // By day the test without a network visits the first address of each route.
      if (isNight) await loadAll(window, operatorsPages(ids));
      else await visitAnew(window, furtherPerRoute(operatorsPages(ids)));
      await window.close();
    });

    it('says on every page for operators what has failed, keeps its layout, and goes on when it works again', async () => {
      const window = await open();
      await visitWhileFailing(window, operatorsPages(ids), /\/v1\/operator/);
      await window.close();
    });

    it('has every page for operators whole, says on it when the browser is offline, keeps what it shows, and goes on once it is back', async () => {
      const window = await open();
      await visitOffline(window, onePerRoute(operatorsPages(ids)));
      await window.close();
    });
  });
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
  await setCompany(control, 'https://issuer.example', { id: 'acme' });
  const [machine, organization] = [agent.hostId, renter.organizationId];
  return { machine, organization, systemTemplate, user: renter.email, company: 'acme' };
}

async function makeMore(): Promise<void> {
  const { control } = test;
  control.core.platform.store.transact((tx) => growFleet(grownBy(tx), SIZE, tx.now));
  for (let number = 2; number <= 25; number++) {
    await control.template({ name: `vLLM ${number}` });
    await setCompany(control, `https://issuer${number}.example`, { id: `acme${number}`, domains: [] });
  }
}
