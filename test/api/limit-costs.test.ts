import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Caller } from '../../control-plane/domain/caller.js';
import { loadAccounts } from '../../control-plane/services/billing/limits/load-accounts.js';
import { findPayer, foreseePayer } from '../../control-plane/services/billing/limits/payer.js';
import { settleOrganizations } from '../../control-plane/services/billing/settle/settle.js';
import { sql, statement } from '../../control-plane/store/sql.js';
import type { Tx } from '../../control-plane/store/store.js';
import type { InstanceBody } from '../harness/api-client.js';
import { World } from '../contract/world.js';
import { statusIs } from '../harness/control-plane.js';
import { DAY_MS, GPU_MICRO, HOUR_MS, makePoor, type Poor } from '../harness/poor.js';

const NONE = { burn_per_hour_micro: null, day_micro: null, month_micro: null };
const PLENTY = 1_000_000_000_000;

let world: World;
beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.test.stop());

const cap = ({ renter }: Poor, path = '/v1/orgs/current/spend-caps') =>
  renter.api.request('PUT', path, { ...NONE, day_micro: PLENTY, month_micro: PLENTY });
const limit = ({ renter }: Poor, id: string) =>
  renter.api.request('PATCH', `/v1/instances/${id}`, {
    max_charge_micro: PLENTY,
    stop_at: '2040-01-01T00:00:00.000Z',
    on_limit: 'destroy',
  });

/** Runs something in a transaction, and returns how many statements that took. */
function countStatements(work: (tx: Tx) => void): number {
  let count = 0;
  world.test.core.platform.store.transact((tx) => {
    const all: Tx['all'] = (text) => tx.all(((count += 1), text));
    const get: Tx['get'] = (text) => tx.get(((count += 1), text));
    const run: Tx['run'] = (text) => tx.run(((count += 1), text));
    work({ ...tx, all, get, run });
  });
  return count;
}

describe('a settlement with limits and caps', () => {
  const limited = async (instances: number) => {
    const poor = await makePoor(world.test, world.templateId, instances);
    await poor.credit(PLENTY / 1_000);
    await cap(poor);
    for (const id of poor.ids) await limit(poor, id);
    const [, stopped] = poor.ids;
    if (stopped !== undefined) await poor.renter.api.post(`/v1/instances/${stopped}/stop`);
    for (let minute = 0; minute < 3; minute++) await poor.pass(60_000);
    return poor;
  };
  const settle = (tx: Tx, ...poors: Poor[]) =>
    settleOrganizations(
      world.test.core.platform,
      tx,
      poors.map(({ renter }) => renter.organizationId),
    );

  it('takes the same number of statements for any number of instances and organizations', async () => {
    const [one, two, many] = [await limited(2), await limited(2), await limited(8)];
    for (const poor of [one, two, many]) poor.agent.close();
    world.test.clock.advance(10_000);
    const counts = [[one], [many], [one, two, many]].map((poors) => countStatements((tx) => settle(tx, ...poors)));
    expect(counts[0]).toBeLessThan(20);
    expect(new Set(counts).size).toBe(1);
  });

  it('does not look at the days of a host that is away, until it reports', async () => {
    const poor = await makePoor(world.test, world.templateId);
    await poor.credit(100 * 24 * 2 * GPU_MICRO);
    await poor.pass(60_000);
    await cap(poor);
    const { platform } = world.test.core;
    const { organizationId } = poor.renter;
    const limits = () =>
      platform.store.transact((tx) => loadAccounts(platform, tx, [organizationId]).get(organizationId)?.limits ?? []);
    const present = limits().length;
    poor.agent.disconnect();
    for (let days = 0; days < 100; days += 20) {
      await poor.pass(20 * DAY_MS);
      await poor.read();
      await world.test.operator.get('/v1/operator/machines');
    }
    expect(limits().length).toBeLessThanOrEqual(present + 2);
    await poor.agent.connect();
    await poor.pass(1_000);
    const { started_at, spend_micro } = (await poor.read()) as unknown as { started_at: string; spend_micro: number };
    expect(spend_micro).toBeGreaterThan(100 * 24 * GPU_MICRO);
    expect(spend_micro).toBe(((world.test.clock.now() - Date.parse(started_at)) * GPU_MICRO) / HOUR_MS);
    poor.agent.close();
  });
});

it('what is foreseen for a cap counts instances that are destroyed', async () => {
  const poor = await makePoor(world.test, world.templateId, 2);
  await poor.credit(100 * GPU_MICRO);
  const { key, secret } = await poor.renter.api.post<{ key: { id: string }; secret: string }>('/v1/api-keys', {
    name: 'ci',
  });
  await cap(poor, `/v1/api-keys/${key.id}/spend-caps`);
  await poor.renter.api.request('DELETE', `/v1/instances/${poor.id}`);
  await statusIs(poor.renter.api, poor.id, 'destroyed');
  const body = { offer_id: poor.offerId, template_id: world.templateId, disk_gb: 10 };
  const its = await poor.renter.api.as(secret).post<InstanceBody>('/v1/instances', body);
  await statusIs(poor.renter.api, its.id, 'running');
  poor.ids[0] = its.id;
  await poor.pass(60_000);
  await poor.renter.api.request('DELETE', `/v1/instances/${its.id}`);
  await statusIs(poor.renter.api, its.id, 'destroyed');
  const { platform } = world.test.core;
  const caller = { kind: 'api_key', keyId: key.id, organizationId: poor.renter.organizationId } as Caller;
  const undone = new Error('undone');
  const compare = () =>
    platform.store.transact((tx) => {
      // As if its host had told so late.
      tx.run(statement(sql`UPDATE meter_intervals SET settled_to = opened_at WHERE instance_id = ${its.id}`));
      const { payer } = foreseePayer(platform, tx, caller);
      settleOrganizations(platform, tx, [caller.organizationId]);
      const spent = findPayer(tx, caller).caps.map(({ spentMicro }) => spentMicro);
      expect(payer.caps.map(({ spentMicro }) => spentMicro)).toEqual(spent);
      expect(spent[0]).toBeGreaterThan(GPU_MICRO / 60);
      throw undone;
    });
  expect(compare).toThrow(undone);
  poor.agent.close();
});
