import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import type { InstanceBody } from '../harness/api-client.js';
import { query, sql, statement } from '../../control-plane/store/sql.js';
import { TestControlPlane, statusIs } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import { DAY_MS, DISK_MICRO, GPU_MICRO, HOUR_MS, makePoor, type Poor } from '../harness/poor.js';

let test: TestControlPlane;
let templateId: string;
beforeAll(async () => {
  test = await TestControlPlane.start();
  templateId = await test.template();
});
afterAll(() => test.stop());

interface Transaction {
  id: string;
  kind: string;
  meter: string | null;
  amount_micro: number;
}

const poorOf = (instances?: number) => makePoor(test, templateId, instances);
const ask = ({ renter, id }: Poor, method: string, action = '') =>
  renter.api.request<InstanceBody>(method, `/v1/instances/${id}${action}`);
const charges = async ({ renter, id }: Poor) =>
  (await renter.api.get<{ items: Transaction[] }>(`/v1/billing/transactions?kind=charge&instance_id=${id}`)).items;

it('no credit raises a balance above what a number holds exactly', async () => {
  const { organizationId } = await test.renter(0);
  const most = 1_000_000_000_000_000;
  test.core.platform.store.transact((tx) =>
    tx.run(
      query
        .updateTable('organizations')
        .set({ balance_micro: most - 10 })
        .where('id', '=', organizationId),
    ),
  );
  const path = `/v1/operator/organizations/${organizationId}/credits`;
  const before = test.dump();
  const refused = await test.operator.request('POST', path, { amount_micro: 11, reason: 'too much' });
  expect(refused).toMatchObject({ status: 422, body: { code: 'VALIDATION_FAILED' } });
  expect(test.dump()).toEqual(before);
  expect((await test.operator.request('POST', path, { amount_micro: 10, reason: 'enough' })).status).toBe(201);
});

describe('What is charged', () => {
  it('is GPU time by the millisecond while running, and disk while stopped, in rows that sum to spend_micro', async () => {
    const poor = await poorOf();
    await poor.pass(1_234_567);
    await ask(poor, 'POST', '/stop');
    await statusIs(poor.renter.api, poor.id, 'stopped');
    await poor.pass(HOUR_MS);
    const gpu = Math.floor((GPU_MICRO * 1_234_567) / HOUR_MS);
    const { spend_micro } = await poor.read();
    expect(spend_micro).toBe(gpu + DISK_MICRO);
    const rows = await charges(poor);
    expect(rows.reduce((sum, { amount_micro }) => sum - amount_micro, 0)).toBe(spend_micro);
    const of = (meter: string) => rows.filter((row) => row.meter === meter);
    expect(of('gpu').reduce((sum, { amount_micro }) => sum - amount_micro, 0)).toBe(gpu);
    expect(await poor.balance()).toBe(2 * GPU_MICRO - gpu - DISK_MICRO);
  });

  it('is booked by the hour: what stands in a closed hour never changes', async () => {
    const poor = await poorOf();
    test.clock.advance(HOUR_MS - (test.clock.now() % HOUR_MS));
    await poor.pass(10 * MINUTE_MS);
    const [before] = await charges(poor);
    await poor.pass(10 * MINUTE_MS);
    const [grown] = await charges(poor);
    expect(grown?.id).toBe(before?.id);
    expect(grown?.amount_micro).toBeLessThan(before?.amount_micro ?? 0);
    await poor.pass(50 * MINUTE_MS);
    const rows = await charges(poor);
    expect(rows.find(({ id }) => id === grown?.id)).toEqual(grown);
    expect(rows.length).toBeGreaterThan(1);
  });

  it('is nothing for the time in which a stop that timed out was under way', async () => {
    const poor = await poorOf();
    await poor.pass(10 * MINUTE_MS);
    poor.agent.automatic = false;
    await ask(poor, 'POST', '/stop');
    await poor.pass(30 * MINUTE_MS);
    expect(await poor.read()).toMatchObject({ status: 'running', error_code: 'stop_timed_out' });
    await poor.pass(10 * MINUTE_MS);
    expect((await poor.read()).spend_micro).toBe(GPU_MICRO / 3);
  });

  it('is nothing that the host of a lost machine has not attested, and nothing for disks on it', async () => {
    const poor = await poorOf(2);
    const [lost, kept] = poor.ids;
    await poor.renter.api.post(`/v1/instances/${kept}/stop`);
    await statusIs(poor.renter.api, kept ?? '', 'stopped');
    await poor.pass(6 * MINUTE_MS);
    poor.agent.disconnect();
    for (let minute = 0; minute < 30; minute++) await poor.pass(MINUTE_MS);
    await test.operator.post(`/v1/operator/machines/${poor.agent.hostId}/lost`);
    await poor.pass(DAY_MS);
    expect(await poor.read(lost)).toMatchObject({ status: 'error', spend_micro: GPU_MICRO / 10 });
    expect(await poor.read(kept)).toMatchObject({ status: 'stopped', spend_micro: (DISK_MICRO * (6 + 15)) / 60 });
  });

  it('is nothing that the host of a lost machine tells of once it is back, whether its renter has tidied up or not', async () => {
    const poor = await poorOf(3);
    const [, destroyed = '', rebooted = ''] = poor.ids;
    await poor.credit(10 * 24 * GPU_MICRO);
    await poor.pass(6 * MINUTE_MS);
    const charged = async () => Promise.all(poor.ids.map(async (id) => (await poor.read(id)).spend_micro));
    const before = await charged();
    poor.agent.disconnect();
    await poor.pass(DAY_MS);
    poor.agent.reboot(rebooted);
    await poor.pass(DAY_MS);
    await test.operator.post(`/v1/operator/machines/${poor.agent.hostId}/lost`);
    await poor.renter.api.delete(`/v1/instances/${destroyed}`);
    await statusIs(poor.renter.api, destroyed, 'destroyed');
    await poor.agent.connect();
    await eventually('the clean-ups', () =>
      [...poor.agent.workloads.values()].every(({ state }) => state !== 'WORKLOAD_STATE_RUNNING'),
    );
    const observation = { state: 'WORKLOAD_STATE_STOPPED' };
    for (const instanceId of poor.ids) {
      const runs = [{ runId: `other ${instanceId}`, ranMs: DAY_MS, endedMsAgo: MINUTE_MS }];
      poor.agent.say({ workloadReport: { instanceId, number: 1_000, sequence: 1, observation, note: '', runs } });
      poor.agent.report(instanceId, 1_001);
      await eventually('the report', () => poor.agent.hasAcknowledged(instanceId, 1_001));
    }
    await poor.pass(5 * MINUTE_MS);
    expect(before).toEqual(poor.ids.map(() => GPU_MICRO / 10));
    expect(await charged()).toEqual(before);
  });

  it('is nothing for a disk that the host does not hold any more', async () => {
    const poor = await poorOf();
    await ask(poor, 'POST', '/stop');
    await statusIs(poor.renter.api, poor.id, 'stopped');
    await poor.pass(6 * MINUTE_MS);
    poor.agent.disconnect();
    poor.agent.workloads.clear();
    await poor.agent.connect();
    test.advance(DAY_MS);
    expect((await poor.read()).spend_micro).toBe(DISK_MICRO / 10);
  });

  it('is no disk time twice when the clock is set right and the control plane started again', async () => {
    const poor = await poorOf();
    await ask(poor, 'POST', '/stop');
    await statusIs(poor.renter.api, poor.id, 'stopped');
    test.clock.step(2 * HOUR_MS);
    await poor.pass(MINUTE_MS);
    test.clock.step(-2 * HOUR_MS);
    await poor.pass(5_000);
    await poor.away(10_000);
    await poor.pass(MINUTE_MS);
    expect((await poor.read()).spend_micro).toBeLessThanOrEqual(
      Math.ceil((DISK_MICRO * (2 * MINUTE_MS + 16_000)) / HOUR_MS),
    );
    await test.operator.post('/v1/operator/clock/confirm');
  });

  it('is the run of before once, when its end is told only after the stop has timed out', async () => {
    const poor = await poorOf();
    await poor.pass(10 * MINUTE_MS);
    poor.agent.automatic = false;
    await ask(poor, 'POST', '/stop');
    const stop = await eventually('the stop', () => poor.agent.held.find(({ desired }) => desired === 'stopped'));
    poor.agent.lose(stop);
    poor.agent.disconnect();
    await poor.pass(30 * MINUTE_MS);
    expect(await poor.read()).toMatchObject({ status: 'running', error_code: 'stop_timed_out' });
    await poor.pass(30 * MINUTE_MS);
    await poor.agent.connect();
    poor.agent.repeat(stop);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    expect((await poor.read()).spend_micro).toBe(GPU_MICRO / 6);
  });

  it('is all of a run that began while its host was out of reach', async () => {
    const poor = await poorOf();
    await poor.pass(MINUTE_MS);
    poor.agent.disconnect();
    await poor.pass(10 * MINUTE_MS);
    poor.agent.reboot(poor.id);
    await poor.pass(30 * MINUTE_MS);
    // What it has kept to say of it is older than the first heartbeat, and comes before it.
    const workload = poor.agent.workloads.get(poor.id);
    if (!workload) throw new Error('there is no workload');
    workload.state = 'WORKLOAD_STATE_STOPPED';
    await poor.agent.connect();
    workload.state = 'WORKLOAD_STATE_RUNNING';
    const { startedAt } = workload;
    workload.startedAt = test.clock.monotonic();
    poor.agent.report(poor.id);
    if (startedAt !== undefined) workload.startedAt = startedAt;
    await poor.pass(0);
    await poor.pass(MINUTE_MS);
    await ask(poor, 'POST', '/stop');
    await statusIs(poor.renter.api, poor.id, 'stopped');
    await eventually('the charge', async () => (await poor.read()).spend_micro === (GPU_MICRO * 32) / 60);
  });

  it('leaves nothing to settle once an instance is gone, however it went', async () => {
    const poor = await poorOf();
    await poor.pass(MINUTE_MS);
    poor.agent.vanish(poor.id);
    await statusIs(poor.renter.api, poor.id, 'error');
    await poor.pass(2 * MINUTE_MS);
    await poor.pass(2 * MINUTE_MS);
    const unsettled = sql<{
      settle_at: number | null;
    }>`SELECT settle_at FROM organizations WHERE id = ${poor.renter.organizationId}`;
    const row = test.core.platform.store.transact((tx) => tx.get(statement(unsettled)));
    expect(row).toEqual({ settle_at: null });
  });

  it('is what was attested late, up to where the balance would have run out', async () => {
    const poor = await poorOf();
    poor.agent.disconnect();
    test.advance(5 * HOUR_MS);
    expect(await poor.read()).toMatchObject({ status: 'running', spend_micro: 0 });
    await poor.agent.connect();
    await poor.pass(1_000);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    expect((await poor.read()).spend_micro).toBe(2 * GPU_MICRO);
    expect(await poor.balance()).toBe(0);
  });
});

describe('The gate', () => {
  it('counts what has come due up to now, and says what it needs', async () => {
    const poor = await poorOf();
    await poor.pass(6 * MINUTE_MS);
    const body = { offer_id: await test.offer(await test.host(), 1, GPU_MICRO), template_id: templateId, disk_gb: 10 };
    const refused = await poor.renter.api.request('POST', '/v1/instances', body);
    expect(refused).toMatchObject({
      status: 402,
      body: {
        code: 'INSUFFICIENT_BALANCE',
        balance_micro: 2 * GPU_MICRO - GPU_MICRO / 10,
        required_micro: 2 * GPU_MICRO + DISK_MICRO + 1_000,
      },
    });
  });
});

describe('A balance that runs out', () => {
  it('stops what runs in the very millisecond, though it is seen only later', async () => {
    const poor = await poorOf();
    await poor.pass(2 * HOUR_MS - 1);
    expect((await poor.read()).status).toBe('running');
    test.clock.advance(MINUTE_MS);
    await poor.pass(0);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    expect((await poor.read()).spend_micro).toBe(2 * GPU_MICRO);
    expect(await poor.eventKinds()).toContain('out_of_balance');
    expect(await poor.balance()).toBe(0);
  });

  it('lasts longer by what is added to it in time', async () => {
    const poor = await poorOf();
    await poor.pass(HOUR_MS);
    await poor.credit(GPU_MICRO);
    await poor.pass(2 * HOUR_MS - 1);
    expect((await poor.read()).status).toBe('running');
    await poor.pass(1);
    await statusIs(poor.renter.api, poor.id, 'stopped');
  });

  it('asks once for a stop that times out, charges nothing for it, and charges again once there is a balance', async () => {
    const poor = await poorOf();
    poor.agent.automatic = false;
    await poor.pass(2 * HOUR_MS);
    await poor.pass(30 * MINUTE_MS);
    for (let half = 0; half < 3; half++) await poor.pass(31 * MINUTE_MS);
    expect(await poor.read()).toMatchObject({
      status: 'running',
      error_code: 'stop_timed_out',
      spend_micro: 2 * GPU_MICRO,
    });
    const asked = (await poor.eventKinds()).filter((kind) => kind === 'stop_timed_out' || kind === 'out_of_balance');
    expect(asked).toEqual(['stop_timed_out', 'out_of_balance']);
    await poor.credit(GPU_MICRO);
    await poor.pass(10 * MINUTE_MS);
    expect((await poor.read()).spend_micro).toBe(2 * GPU_MICRO + GPU_MICRO / 6);
  });
});

describe('A control plane that was away for a day', () => {
  it('charges what ran up to where the balance would have run out, once, and destroys nobody', async () => {
    const poor = await poorOf();
    await poor.pass(HOUR_MS);
    await poor.away(DAY_MS);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    expect((await poor.read()).spend_micro).toBe(2 * GPU_MICRO);
    await poor.away(MINUTE_MS);
    const { spend_micro } = await poor.read();
    const disk = (DISK_MICRO * (MINUTE_MS + 2_000)) / HOUR_MS;
    expect(spend_micro).toBeGreaterThan(2 * GPU_MICRO);
    expect(spend_micro).toBeLessThanOrEqual(2 * GPU_MICRO + disk);
  });

  it('charges what ended meanwhile for as long as it ran', async () => {
    const poor = await poorOf();
    await poor.pass(HOUR_MS);
    await poor.away(DAY_MS, () => {
      const workload = poor.agent.workloads.get(poor.id);
      const exit = { code: 0, ranMs: HOUR_MS + 10 * MINUTE_MS };
      if (workload) Object.assign(workload, { state: 'WORKLOAD_STATE_STOPPED', exit });
    });
    expect(await statusIs(poor.renter.api, poor.id, 'error')).toMatchObject({ error_code: 'workload_completed' });
    await poor.pass(3 * MINUTE_MS);
    expect((await poor.read()).spend_micro).toBe((GPU_MICRO * 7) / 6);
  });

  it('holds running and stopped instances of one balance in the order of time', async () => {
    const poor = await poorOf(2);
    const [, stopped = ''] = poor.ids;
    await poor.renter.api.post(`/v1/instances/${stopped}/stop`);
    await statusIs(poor.renter.api, stopped, 'stopped');
    await poor.away(DAY_MS);
    const lastedMs = Math.ceil((4 * GPU_MICRO * HOUR_MS) / (GPU_MICRO + DISK_MICRO));
    const gpu = (await poor.read()).spend_micro;
    // What the disk has left of the balance: the last millisecond is charged no further than that.
    expect(gpu).toBe(4 * GPU_MICRO - Math.floor((DISK_MICRO * lastedMs) / HOUR_MS));
    expect((await poor.read(stopped)).spend_micro).toBeGreaterThanOrEqual(24 * DISK_MICRO);
  });
});
