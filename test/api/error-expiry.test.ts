import { afterAll, beforeAll, expect, it } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../shared/time.js';
import type { InstanceBody } from '../harness/api-client.js';
import { query } from '../../control-plane/store/sql.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import type { FakeAgent } from '../harness/fake-agent.js';

let test: TestControlPlane;
let renter: Renter;
let agent: FakeAgent;
let offerId: string;
beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
  agent = await test.host({ gpus: 4 });
  offerId = await test.offer(agent);
  test.advance(3 * MINUTE_MS);
});
afterAll(() => test.stop());

async function running(): Promise<string> {
  await eventually('the host to be heard', async () => {
    agent.beat();
    return (await renter.api.get<{ state: string }>(`/v1/offers/${offerId}`)).state === 'available';
  });
  const body = { offer_id: offerId, template_id: await test.template(), disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  return id;
}

async function failed(): Promise<string> {
  const id = await running();
  agent.exit(id, { code: 1 });
  await statusIs(renter.api, id, 'error');
  test.advance(MINUTE_MS);
  return id;
}

const status = async (id: string) => (await renter.api.get<InstanceBody>(`/v1/instances/${id}`)).status;
const destroyed = (id: string) =>
  advanceUntil('it to be destroyed', { clock: test, stepMs: 1_000, parties: [() => agent.roundTrip()] }, async () => {
    return (await status(id)) === 'destroyed';
  });
const kinds = async (id: string) => {
  const { items } = await renter.api.get<{ items: { kind: string; message: string }[] }>(`/v1/instances/${id}/events`);
  return Object.fromEntries(items.map(({ kind, message }) => [kind, message]));
};

it('an instance in error is destroyed after a day, as it was told at once and an hour before', async () => {
  const before = await test.operator.get<{ disk_available_gb: number }>(`/v1/operator/machines/${agent.hostId}`);
  const id = await failed();
  const at = new Date(test.clock.now() + DAY_MS).toISOString();
  expect((await kinds(id))['destroy_scheduled']).toContain(`the instance is destroyed at ${at}`);
  expect(await renter.api.get(`/v1/instances/${id}`)).toMatchObject({ status: 'error', destroys_at: at });
  test.advance(DAY_MS - HOUR_MS - MINUTE_MS);
  expect(await kinds(id)).not.toHaveProperty('destroy_soon');
  test.advance(MINUTE_MS);
  expect(await kinds(id)).toHaveProperty('destroy_soon');
  test.advance(HOUR_MS - 1);
  expect(await status(id)).toBe('error');
  test.advance(MINUTE_MS);
  expect(await status(id)).toBe('destroying');
  await destroyed(id);
  expect(await kinds(id)).toHaveProperty('error_expired');
  const after = await test.operator.get<{ disk_available_gb: number }>(`/v1/operator/machines/${agent.hostId}`);
  expect(after.disk_available_gb).toBe(before.disk_available_gb);
});

it('nothing is destroyed on a clock that was set, and the day begins anew when it is confirmed', async () => {
  const id = await failed();
  test.clock.step(2 * DAY_MS);
  test.advance(2 * MINUTE_MS);
  expect(await status(id)).toBe('error');
  await test.operator.post('/v1/operator/clock/confirm');
  test.advance(DAY_MS - 1);
  expect(await status(id)).toBe('error');
  test.advance(MINUTE_MS);
  await destroyed(id);
});

it('what was in error before it could be told is told first', async () => {
  const id = await failed();
  await test.restart({ destroyErrorsAfterMs: 2 * DAY_MS });
  await agent.connect();
  await test.signInOperator();
  test.core.platform.store.transact((tx) => {
    const events = query.deleteFrom('events').where('instance_id', '=', id);
    tx.run(events.where('kind', '=', 'destroy_scheduled'));
  });
  test.clock.advance(5 * DAY_MS);
  test.advance(1);
  expect(await status(id)).toBe('error');
  expect(await kinds(id)).toHaveProperty('destroy_scheduled');
  test.advance(2 * DAY_MS - 1);
  expect(await status(id)).toBe('error');
  test.advance(MINUTE_MS);
  await destroyed(id);
  await test.restart({ destroyErrorsAfterMs: DAY_MS });
  await agent.connect();
  await test.signInOperator();
});

it('an operator finds and removes one that is in error, without a reason', async () => {
  const [broken, sound] = [await failed(), await running()];
  const list = async (query: string) =>
    (await test.operator.get<{ items: { id: string }[] }>(`/v1/operator/instances?${query}`)).items.map(({ id }) => id);
  expect(await list(`machine_id=${agent.hostId}`)).toEqual(expect.arrayContaining([broken, sound]));
  expect(await list('status=error')).toEqual([broken]);
  const before = test.dump();
  for (const [id, code] of [
    [sound, 'VALIDATION_FAILED'],
    ['nothing', 'INSTANCE_NOT_FOUND'],
  ] as const) {
    expect(await test.operator.request('DELETE', `/v1/operator/instances/${id}`)).toMatchObject({ body: { code } });
  }
  expect(test.dump()).toEqual(before);
  expect((await test.operator.request('DELETE', `/v1/operator/instances/${broken}`)).status).toBe(202);
  await destroyed(broken);
  expect(await kinds(broken)).toHaveProperty('removed_by_operator');
  const { items } = await test.operator.get<{ items: object[] }>('/v1/operator/audit-log?limit=1');
  expect(items).toMatchObject([{ action: 'instance.remove', subject: broken }]);
  await eventually('its disk to be free', async () => !(await list('')).includes(broken));
});
