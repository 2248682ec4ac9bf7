import { rmSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { DAY_MS, MINUTE_MS } from '../../shared/time.js';
import { backUp, restore } from '../../control-plane/store/backup.js';
import { TestControlPlane, statusIs } from '../harness/control-plane.js';
import type { FakeAgent } from '../harness/fake-agent.js';
import { DISK_MICRO, HOUR_MS, makePoor, type Poor } from '../harness/poor.js';
import { eventually } from '../../scripts/eventually.js';

let test: TestControlPlane;
let templateId: string;
beforeAll(async () => {
  test = await TestControlPlane.start();
  templateId = await test.template();
});
/** A host that is lost is none of those that are missed. */
afterEach(async () => {
  for (const agent of test.agents.splice(0)) {
    await goes(agent);
    await test.operator.post(`/v1/operator/machines/${agent.hostId}/lost`);
    agent.close();
  }
});
afterAll(() => test.stop());

/** An instance that was stopped this very moment. */
async function stopped(): Promise<Poor> {
  const poor = await makePoor(test, templateId);
  await poor.credit(1_000 * DISK_MICRO);
  await poor.renter.api.post(`/v1/instances/${poor.id}/stop`);
  await statusIs(poor.renter.api, poor.id, 'stopped');
  return poor;
}

/** For how many minutes its disk is charged. */
async function chargedMinutes({ renter, id }: Poor): Promise<number> {
  const path = `/v1/billing/transactions?instance_id=${id}`;
  const { items } = await renter.api.get<{ items: { meter: string; amount_micro: number }[] }>(path);
  const micro = items.filter(({ meter }) => meter === 'disk').reduce((sum, { amount_micro }) => sum - amount_micro, 0);
  return Math.round((micro * 60) / DISK_MICRO);
}

/** Time passes, and the control plane looks at its hosts all the while. */
async function pass(poor: Poor, minutes: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute++) await poor.pass(MINUTE_MS);
}

async function goes(agent: FakeAgent): Promise<void> {
  agent.disconnect();
  await eventually('the host to be away', () => !test.core.platform.connections.isConnected(agent.hostId));
}

async function returns(poor: Poor): Promise<void> {
  await poor.agent.connect();
  await poor.pass(0);
}

describe('the disk of what is stopped, while its host is silent', () => {
  it('is charged for fourteen minutes of silence', async () => {
    const poor = await stopped();
    await goes(poor.agent);
    await pass(poor, 14);
    await returns(poor);
    await pass(poor, 1);
    expect(await chargedMinutes(poor)).toBe(15);
  });

  it('is charged for fifteen of sixteen minutes, and again from the hello that lists it', async () => {
    const poor = await stopped();
    await goes(poor.agent);
    await pass(poor, 16);
    expect(await chargedMinutes(poor)).toBe(15);
    await returns(poor);
    await pass(poor, 2);
    expect(await chargedMinutes(poor)).toBe(17);
    const { items } = await poor.renter.api.get<{ items: { meter: string; began_at: string; ended_at: string }[] }>(
      `/v1/instances/${poor.id}/meter-intervals`,
    );
    const [second, first] = items.filter(({ meter }) => meter === 'disk');
    const gapMs = Date.parse(second?.began_at ?? '') - Date.parse(first?.ended_at ?? '');
    expect(gapMs).toBe(MINUTE_MS);
  });

  it('is not charged for the days of an absence that nobody declares, whatever is asked for; it still counts for the burn', async () => {
    const poor = await stopped();
    const burn = async () =>
      (await poor.renter.api.get<{ burn_per_hour_micro: number }>('/v1/orgs/current')).burn_per_hour_micro;
    await goes(poor.agent);
    await pass(poor, 20);
    expect(await poor.renter.api.request('POST', `/v1/instances/${poor.id}/start`)).toMatchObject({
      status: 409,
      body: { code: 'HOST_UNREACHABLE' },
    });
    await poor.pass(2 * DAY_MS);
    await pass(poor, 20);
    expect(await chargedMinutes(poor)).toBe(15);
    expect(await burn()).toBe(DISK_MICRO);
    poor.agent.workloads.clear();
    await returns(poor);
    await pass(poor, 20);
    expect(await chargedMinutes(poor)).toBe(15);
  });

  it('is not metered by a start that is undone meanwhile', async () => {
    const poor = await stopped();
    poor.agent.automatic = false;
    const start = poor.renter.api.request('POST', `/v1/instances/${poor.id}/start`);
    poor.agent.accept(await eventually('the start', () => poor.agent.held.find(({ running }) => running)));
    expect((await start).status).toBe(202);
    await pass(poor, 9);
    await goes(poor.agent);
    await poor.pass(0);
    // Undone a minute later: of the silence, fourteen minutes are left.
    await pass(poor, 30);
    expect(await poor.read()).toMatchObject({ status: 'stopped', error_code: 'start_timed_out' });
    expect(await chargedMinutes(poor)).toBe(14);
  });

  it('is metered only after a hello, also where the stream of the silent host is still open', async () => {
    const poor = await stopped();
    for (let minute = 0; minute < 16; minute++) test.advance(MINUTE_MS);
    await eventually('the stream to be ended', () => !poor.agent.connected);
    expect(await chargedMinutes(poor)).toBe(15);
    await returns(poor);
    await pass(poor, 1);
    expect(await chargedMinutes(poor)).toBe(16);
  });

  it.each([
    ['ahead', 3 * DAY_MS],
    ['back', -3 * DAY_MS],
  ])('is silence by no wall clock: one that is set %s neither makes it longer nor shorter', async (_, stepMs) => {
    const poor = await stopped();
    await goes(poor.agent);
    await pass(poor, 10);
    test.clock.step(stepMs);
    await pass(poor, 4);
    await returns(poor);
    await goes(poor.agent);
    await pass(poor, 10);
    test.clock.step(-stepMs);
    await pass(poor, 10);
    expect(await chargedMinutes(poor)).toBe(14 + 15);
    await returns(poor);
    await test.operator.post('/v1/operator/clock/confirm');
  });
});

describe('time in which the control plane could not hear a host', () => {
  it('is charged where it was down for an hour, once the hello lists the disk', async () => {
    const poor = await stopped();
    await pass(poor, 1);
    await test.core.stop();
    test.clock.advance(HOUR_MS);
    await test.boot();
    await pass(poor, 1);
    expect(await chargedMinutes(poor)).toBe(1);
    await returns(poor);
    expect(await chargedMinutes(poor)).toBe(62);
  });

  it('is not charged where it was down, and the disk is missing afterwards', async () => {
    const poor = await stopped();
    await pass(poor, 1);
    poor.agent.workloads.clear();
    await poor.away(HOUR_MS);
    await pass(poor, 2);
    expect(await chargedMinutes(poor)).toBe(1);
  });

  it('is no silence of the host: fifteen minutes pass while it runs, over restarts, too', async () => {
    const poor = await stopped();
    await goes(poor.agent);
    await pass(poor, 6);
    for (let restart = 0; restart < 2; restart++) {
      await test.core.stop();
      test.clock.advance(HOUR_MS);
      await test.boot();
      await pass(poor, 6);
    }
    expect(await chargedMinutes(poor)).toBe(6);
    await returns(poor);
    // The six minutes, the two hours, and nine more minutes of silence; of it, each restart forgets a minute at most.
    const forgotten = (await chargedMinutes(poor)) - (6 + 2 * 60 + 9);
    expect([0, 1, 2]).toContain(forgotten);
  });

  it('is charged where it was stalled, once the host is heard on its stream', async () => {
    const poor = await stopped();
    test.advance(HOUR_MS);
    expect(await chargedMinutes(poor)).toBe(0);
    await poor.pass(0);
    expect(await chargedMinutes(poor)).toBe(60);
  });

  it('is not charged where it was stalled, and the host comes back without the disk', async () => {
    const poor = await stopped();
    await goes(poor.agent);
    test.advance(HOUR_MS);
    poor.agent.workloads.clear();
    await returns(poor);
    expect(await chargedMinutes(poor)).toBe(0);
  });

  it('is charged where it missed more than a third of its hosts, and at least five, once the hello lists the disk', async () => {
    const poor = await stopped();
    const others = [await test.host(), await test.host(), await test.host(), await test.host()];
    await pass(poor, 2);
    for (const agent of others) agent.disconnect();
    await goes(poor.agent);
    await pass(poor, 60);
    expect(await chargedMinutes(poor)).toBeLessThanOrEqual(3);
    await returns(poor);
    expect(await chargedMinutes(poor)).toBe(62);
  });
});

it('after a restore the disk is charged once its host lists it, but for silence since', async () => {
  const [early, late, never] = [await stopped(), await stopped(), await stopped()];
  const all = [early, late, never];
  for (const poor of all) await pass(poor, 1);
  const backup = `${test.databaseFile}.backup`;
  backUp(test.databaseFile, backup);
  const charged = await Promise.all(all.map(chargedMinutes));
  await test.core.stop();
  test.clock.advance(HOUR_MS);
  const { replaced } = restore(backup, test.databaseFile, test.clock.now());
  for (const suffix of ['', '-wal', '-shm']) rmSync(`${replaced}${suffix}`, { force: true });
  await test.boot();
  never.agent.workloads.clear();
  await pass(early, 10);
  await returns(early);
  await pass(early, 20);
  for (const poor of [late, never]) await returns(poor);
  const more = (await Promise.all(all.map(chargedMinutes))).map((minutes, index) => minutes - (charged[index] ?? 0));
  const since = more[2];
  expect(since).toBeLessThanOrEqual(2);
  expect(more.slice(0, 2)).toEqual([60 + 10 + 20, 60 + 15]);
});
