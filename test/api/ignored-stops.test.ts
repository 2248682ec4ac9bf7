import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import type { components } from '../../client/api/index.js';
import { recoverWrittenOff } from '../../control-plane/store/migrations/0034-credited-stops.js';
import { query, sql, statement } from '../../control-plane/store/sql.js';
import type { InstanceBody } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import type { FakeAgent } from '../harness/fake-agent.js';

const BEATS = 2;
/** A micro-dollar each millisecond. */
const RATE = 3_600_000;

let test: TestControlPlane;
let renter: Renter;
let templateId: string;

beforeAll(async () => {
  test = await TestControlPlane.start();
  templateId = await test.template();
});
beforeEach(async () => {
  renter = await test.renter();
});
afterAll(() => test.stop());

const read = (id: string) => renter.api.get<InstanceBody & { spend_micro: number }>(`/v1/instances/${id}`);
const ask = (method: string, path: string) => renter.api.request(method, `/v1/instances/${path}`);

async function running(rate = RATE): Promise<{ agent: FakeAgent; id: string }> {
  const agent = await test.host({ gpus: 1 });
  const body = { offer_id: await test.offer(agent, 1, rate), template_id: templateId, disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  return { agent, id };
}

describe('a stop that its host ignores', () => {
  const machineOf = (agent: FakeAgent) =>
    test.operator.get<{ cordoned: boolean }>(`/v1/operator/machines/${agent.hostId}`);
  const ignored = async (id: string) =>
    (
      await test.operator.get<{ items: { instance_id: string; charged_micro: number; is_open: boolean }[] }>(
        '/v1/operator/ignored-stops',
      )
    ).items.find(({ instance_id }) => instance_id === id);
  /** What the intervals of an instance with this rate say that its GPU time costs. */
  const calculated = async (id: string) => {
    const { items } = await renter.api.get<{ items: { charged_ms: number; uncovered_micro: number }[] }>(
      `/v1/instances/${id}/meter-intervals`,
    );
    return items.reduce((sum, { charged_ms, uncovered_micro }) => sum + 7_000 * charged_ms - uncovered_micro, 0);
  };
  /** Time passes, in which the host says that the workload is up. */
  const earn = async ({ agent, id }: { agent: FakeAgent; id: string }, minutes: number) => {
    for (let beat = 0; beat < minutes * BEATS; beat++) {
      test.advance(MINUTE_MS / BEATS);
      agent.beat();
      // So that it is heard before more time passes.
      await read(id);
    }
  };

  it('is told to the operator, who credits all of what was charged since, and nothing twice', async () => {
    const rented = await running();
    const { agent, id } = rented;
    agent.automatic = false;
    await ask('POST', `${id}/stop`);
    await earn(rented, 29);
    const before = (await read(id)).spend_micro;
    await earn(rented, 2);
    expect(await read(id)).toMatchObject({ status: 'running', error_code: 'stop_timed_out' });
    await earn(rented, 10);
    const owed = await eventually('charges', async () => {
      const stop = await ignored(id);
      return stop && stop.charged_micro >= 9 * 60_000 && stop;
    });
    expect(owed.is_open).toBe(true);
    const { needs } = await test.operator.get<components['schemas']['OperatorOverview']>('/v1/operator/overview');
    const message = `Instance ${id.slice(0, 8)} of Renter's organization is still charged.`;
    expect(needs.find(({ kind }) => kind === 'stop_ignored')?.items).toMatchObject([
      { message, machine_id: agent.hostId, name: expect.any(String) as string },
    ]);
    expect((await machineOf(agent)).cordoned).toBe(true);
    const credit = () =>
      test.operator.request<{ amount_micro: number }>('POST', `/v1/operator/instances/${id}/credit-ignored-stop`, {
        reason: 'the host did not stop it',
      });
    const { status, body } = await credit();
    expect(status).toBe(201);
    expect(body.amount_micro).toBe((await read(id)).spend_micro - before);
    expect(await renter.api.get('/v1/audit-log?action=instance.credit_ignored_stop')).toMatchObject({
      items: [{ actor_kind: 'operator', object: `instances/${id}`, reason: 'the host did not stop it' }],
    });
    expect(await credit()).toMatchObject({ status: 409, body: { code: 'INVALID_STATE' } });
    expect(await ignored(id)).toBeUndefined();
  });

  it('is not credited what was not charged, because the balance ran out', async () => {
    // 7,000 micro-dollars a millisecond: after an hour and a half of them, 1 is left.
    renter = await test.renter(7_000 * 90 * MINUTE_MS + 1);
    const rented = await running(7_000 * 60 * MINUTE_MS);
    const { agent, id } = rented;
    agent.automatic = false;
    await earn(rented, 10);
    await ask('POST', `${id}/stop`);
    await earn(rented, 31);
    const beforeStop = 7_000 * 10 * MINUTE_MS;
    await earn(rented, 81);
    await eventually('the end of the balance', async () => (await read(id)).status === 'stopping');
    const charged = (await read(id)).spend_micro - beforeStop;
    expect(charged).toBe(7_000 * 80 * MINUTE_MS + 1);
    expect((await ignored(id))?.charged_micro).toBe(charged);
  });

  it('has charges that can still be calculated once they are credited, also by an earlier release', async () => {
    // 7,000 micro-dollars a millisecond: after seventy minutes of them, 1 is left.
    renter = await test.renter(7_000 * 70 * MINUTE_MS + 1);
    const rented = await running(7_000 * 60 * MINUTE_MS);
    const { agent, id } = rented;
    agent.automatic = false;
    await ask('POST', `${id}/stop`);
    await earn(rented, 102);
    await eventually('the end of the balance', async () => (await read(id)).status === 'stopping');
    const path = `/v1/operator/instances/${id}/credit-ignored-stop`;
    const { amount_micro } = await test.operator.post<{ amount_micro: number }>(path, { reason: 'it was ignored' });
    const due = (await read(id)).spend_micro;
    expect(amount_micro % 7_000).toBe(1);
    expect(await calculated(id)).toBe(due);
    const { store } = test.core.platform;
    store.transact((tx) => {
      const forgotten = query
        .updateTable('meter_intervals')
        .set({ written_off_micro: 0, credited_written_off_micro: 0 });
      tx.run(forgotten.where('instance_id', '=', id));
      tx.run(statement(sql.raw(recoverWrittenOff)));
    });
    expect(await calculated(id)).toBe(due);
    expect((await ignored(id))?.charged_micro ?? 0).toBe(0);
  });

  it('is over once its host has confirmed it, if it has cost nothing', async () => {
    // A micro-dollar in a hundred seconds.
    const rented = await running(36);
    const { agent, id } = rented;
    agent.automatic = false;
    await ask('POST', `${id}/stop`);
    await earn(rented, 29.5);
    const passing = { clock: test, stepMs: 1_000, parties: [() => agent.roundTrip()] };
    await advanceUntil('the time-out', passing, async () => (await read(id))['error_code'] === 'stop_timed_out');
    await advanceUntil('charges', passing, () => ignored(id));
    const stop = agent.held.at(-1);
    if (stop) agent.done(stop);
    await statusIs(renter.api, id, 'stopped');
    expect(await ignored(id)).toBeUndefined();
  });

  it('of a host that says that it tries leaves the machine on the market for half an hour', async () => {
    const rented = await running();
    const { agent, id } = rented;
    agent.automatic = false;
    await ask('POST', `${id}/stop`);
    for (let minute = 0; minute < 31; minute++) {
      await earn(rented, 1);
      agent.say({ progress: { instanceId: id, kind: 'stop_attempt', message: `for ${minute} minutes` } });
    }
    const passing = { clock: test, stepMs: MINUTE_MS / BEATS, parties: [() => agent.roundTrip()] };
    await advanceUntil('the time-out', passing, async () => (await read(id))['error_code'] === 'stop_timed_out');
    expect((await machineOf(agent)).cordoned).toBe(false);

    // Its word alone is no excuse for half an hour more, also not with another run.
    const claim = async (minutes: number) => {
      for (let minute = 0; minute < minutes; minute++) {
        await earn(rented, 1);
        agent.say({ progress: { instanceId: id, kind: 'stop_attempt', message: `still for ${minute} minutes` } });
      }
    };
    await claim(20);
    agent.reboot(id);
    expect((await machineOf(agent)).cordoned).toBe(false);
    await claim(13);
    expect((await machineOf(agent)).cordoned).toBe(true);
    expect((await renter.api.get<{ items: { kind: string }[] }>(`/v1/instances/${id}/events`)).items).toContainEqual(
      expect.objectContaining({ kind: 'machine_cordoned' }),
    );
    await test.operator.post(`/v1/operator/machines/${agent.hostId}/uncordon`);
    await claim(2);
    expect((await machineOf(agent)).cordoned).toBe(false);
  });
});
