import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import { query } from '../../control-plane/store/sql.js';
import { World } from '../contract/world.js';
import { statusIs } from '../harness/control-plane.js';
import { DAY_MS, HOUR_MS } from '../harness/poor.js';
import type { FakeAgent } from '../harness/fake-agent.js';
import { listening } from '../harness/told.js';
import { eventually } from '../../scripts/eventually.js';

const GB = 1e9;

interface Usage {
  window: string;
  resolution_seconds: number;
  at: string[];
  gpus: { index: number; use_percent: (number | null)[]; use_max_percent: (number | null)[] }[];
  cpu_cores: (number | null)[];
  cpu_max_cores: (number | null)[];
  disk_used_bytes: (number | null)[];
  network_in_bytes: (number | null)[];
  ssh_sessions: (number | null)[];
}

let world: World;
beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.stop());

const usage = (id: string, window: string) => world.admin.api.get<Usage>(`/v1/instances/${id}/usage?window=${window}`);

async function running(): Promise<{ agent: FakeAgent; id: string }> {
  const { agent, body } = await world.host();
  const { id } = await world.running(body);
  return { agent, id };
}

/** Rows of an instance in the database. */
const rowsIn = ({ test }: World, id: string) =>
  test.core.platform.store.transact((tx) =>
    tx.all(query.selectFrom('measurements').select(['grain', 'from_at']).where('instance_id', '=', id)),
  );
const rowsOf = (id: string) => rowsIn(world, id);

/** Each minute that passes is measured. */
async function pass(agent: FakeAgent, id: string, minutes: number, cpuMillis = 500, of = world): Promise<void> {
  for (let minute = 0; minute < minutes; minute++) {
    of.test.advance(MINUTE_MS);
    await agent.measure(id, { endedMsAgo: 100, cpuMillis, gpus: [{ usePercent: 7 }] });
  }
}

describe('what an instance uses', () => {
  it('is shown by the minute, before and after it is written, also over a restart', async () => {
    const { agent, id } = await running();
    await pass(agent, id, 5);
    expect(rowsOf(id)).toEqual([]);
    const before = await usage(id, '24h');
    expect(before).toMatchObject({ window: '24h', resolution_seconds: 60, cpu_cores: [0.5, 0.5, 0.5, 0.5, 0.5] });
    expect(before.gpus).toMatchObject([
      { index: 0, use_percent: [7, 7, 7, 7, 7], use_max_percent: [null, null, null, null, null] },
    ]);
    expect(before.ssh_sessions).toEqual([null, null, null, null, null]);
    await pass(agent, id, 8);
    expect(rowsOf(id).length).toBeGreaterThan(0);
    const after = await usage(id, '24h');
    expect(after.at).toHaveLength(13);
    expect(after.at.slice(0, 5)).toEqual(before.at);
    await world.test.restart();
    expect(await usage(id, '24h')).toEqual(after);
    await agent.connect();
  });

  it('is not shown to a key that was revoked while the host was asked, nor is what the workload printed', async () => {
    const { agent, id } = await running();
    const { key, secret } = await world.key();
    agent.points = null;
    const answers = vi.spyOn(agent as unknown as { sendLines: () => void }, 'sendLines').mockImplementation(() => {});
    const asked = ['usage?window=1h', 'logs'].map((what) =>
      world.test.api.as(secret).request('GET', `/v1/instances/${id}/${what}`),
    );
    await eventually('both questions', () => agent.queried.length === 1 && answers.mock.calls.length === 1);
    await world.admin.api.delete(`/v1/api-keys/${key.id}`);
    world.test.clock.advance(6_000);
    for (const answer of asked) expect(await answer).toMatchObject({ status: 401, body: { code: 'TOKEN_INVALID' } });
    answers.mockRestore();
  });

  it('comes from its host for the last hour, from one query for all who ask, and from the database without it', async () => {
    const { agent, id } = await running();
    await pass(agent, id, 2);
    agent.points = [
      { endedMsAgo: 20_000, cpuMillis: 250 },
      { endedMsAgo: 10_000, cpuMillis: 750, networkInBytes: 5 },
    ];
    const asked = await Promise.all([usage(id, '1h'), usage(id, '1h'), usage(id, '1h')]);
    for (const each of asked)
      expect(each).toMatchObject({
        resolution_seconds: 10,
        cpu_cores: [0.25, 0.75],
        network_in_bytes: [null, 5],
        gpus: [],
      });
    expect(Date.parse(asked[0].at[1] ?? '') - Date.parse(asked[0].at[0] ?? '')).toBe(10_000);
    await usage(id, '1h');
    expect(agent.queried).toHaveLength(1);
    world.test.clock.advance(10_000);
    agent.points = null;
    const late = usage(id, '1h');
    await eventually('the query', () => agent.queried.length === 2);
    world.test.clock.advance(6_000);
    expect(await late).toMatchObject({ resolution_seconds: 60, cpu_cores: [0.5, 0.5] });
    agent.disconnect();
    expect(await usage(id, '1h')).toMatchObject({ resolution_seconds: 60, cpu_cores: [0.5, 0.5] });
    expect(agent.queried).toHaveLength(2);
  });

  it('is not asked of an agent that does not answer, and an answer to nothing is ignored', async () => {
    const { agent, id } = await running();
    await agent.claim({ answersMeasurementQueries: false });
    await pass(agent, id, 1);
    expect((await usage(id, '1h')).resolution_seconds).toBe(60);
    expect(agent.queried).toEqual([]);
    agent.say({ measurementAnswer: { queryId: 'x', points: [{ endedMsAgo: 1 }] } });
    await agent.speak(id);
    expect(agent.connected).toBe(true);
  });

  it('is kept for a day by the minute and for 90 days by the hour, in few rows, also once it is destroyed', async () => {
    const old = await World.make();
    const { test, admin } = old;
    const { agent, body } = await old.host();
    const { id } = await old.running(body);
    const usage = async (window: string) => {
      await admin.api.get('/v1/me');
      return admin.api.get<Usage>(`/v1/instances/${id}/usage?window=${window}`);
    };
    const rowsOf = () => rowsIn(old, id);
    const begin = test.clock.now();
    for (let hour = 0; hour < 30; hour++) {
      test.advance(HOUR_MS - 4 * MINUTE_MS);
      await pass(agent, id, 4, 100 * hour, old);
    }
    test.advance(11 * MINUTE_MS);
    const minutes = rowsOf().filter(({ grain }) => grain === 'minute');
    expect(minutes.length).toBeLessThanOrEqual(27);
    const day = await usage('24h');
    expect(day.at.every((at) => Date.parse(at) > test.clock.now() - DAY_MS)).toBe(true);
    expect(day.at.length).toBeGreaterThanOrEqual(23 * 4);
    const hours = await usage('90d');
    expect(hours.resolution_seconds).toBe(3_600);
    expect(hours.cpu_cores.length).toBeGreaterThanOrEqual(30);
    expect(hours.cpu_cores.length).toBeLessThanOrEqual(32);
    expect(hours.at.every((at) => Date.parse(at) <= test.clock.now() && Date.parse(at) > begin)).toBe(true);
    expect(Math.max(...hours.cpu_cores.map(Number))).toBeLessThanOrEqual(2.9);
    agent.beat();
    await admin.api.request('DELETE', `/v1/instances/${id}`);
    await statusIs(admin.api, id, 'destroyed');
    test.advance(2 * DAY_MS);
    for (let run = 0; run < 3; run++) test.advance(MINUTE_MS);
    expect(rowsOf().filter(({ grain }) => grain === 'minute')).toEqual([]);
    expect((await usage('90d')).cpu_cores).toHaveLength(hours.cpu_cores.length);
    test.advance(92 * DAY_MS);
    test.advance(MINUTE_MS);
    expect(rowsOf()).toEqual([]);
    await old.stop();
  });

  it('is nobody else’s, and operators see it of each machine', async () => {
    const { agent, id } = await running();
    await pass(agent, id, 3);
    const stranger = await world.test.renter();
    const foreign = await stranger.api.request('GET', `/v1/instances/${id}/usage`);
    expect(foreign).toMatchObject({ status: 404, body: { code: 'INSTANCE_NOT_FOUND' } });
    expect(await stranger.api.get<string>('/v1/metrics/instances')).not.toContain('instance_id');
    const machine = `/v1/operator/machines/${agent.hostId}/usage`;
    const shown = await world.test.operator.get<{ instances: object[] }>(`${machine}?window=24h`);
    expect(shown.instances).toMatchObject([{ instance_id: id, resolution_seconds: 60, cpu_cores: [0.5, 0.5, 0.5] }]);
    expect(await world.admin.api.request('GET', `/v1/instances/${id}/usage?window=2h`)).toMatchObject({ status: 422 });
  });

  it('is shown to a Prometheus while it runs and is measured, with a key of the organization', async () => {
    const { agent, id } = await running();
    await pass(agent, id, 1);
    const { key } = await world.admin.api.post<{ key: { id: string }; secret: string }>('/v1/api-keys', { name: 'p' });
    expect(key.id).toBeTruthy();
    const { headers, body } = await world.admin.api.request<string>('GET', '/v1/metrics/instances');
    expect(headers.get('content-type')).toMatch(/^text\/plain/);
    expect(body).toContain(`gpurent_instance_cpu_cores{instance_id="${id}",label=""} 0.5\n`);
    expect(body).toContain(`gpurent_instance_gpu_use_ratio{instance_id="${id}",label="",gpu="0"} 0.07\n`);
    world.test.clock.advance(4 * MINUTE_MS);
    agent.beat();
    expect(await world.admin.api.get<string>('/v1/metrics/instances')).not.toContain(id);
  });
});

describe('a host', () => {
  it('is heard of its own instances alone, in the past, and within what a machine can have', async () => {
    const { agent, id } = await running();
    const other = await running();
    await pass(agent, id, 1);
    await other.agent.measure(other.id, { endedMsAgo: 5, cpuMillis: 1 });
    world.test.clock.advance(MINUTE_MS);
    // The neighbour's instance: nothing comes of it.
    agent.say({
      measurementReport: { instances: [{ instanceId: other.id, minutes: [{ endedMsAgo: 0, cpuMillis: 9 }] }] },
    });
    await agent.speak(id);
    expect((await usage(other.id, '24h')).cpu_cores).toEqual([0.001]);
    const refused: [string, object][] = [
      ['too old', { endedMsAgo: 2 * HOUR_MS }],
      ['no machine', { endedMsAgo: 1, cpuMillis: 1e12 }],
      ['no machine', { endedMsAgo: 1, gpus: [{ usePercent: 101 }] }],
      ['no machine', { endedMsAgo: 1, diskUsedBytes: 2e15 }],
      ['64 GPUs', { endedMsAgo: 1, gpus: Array.from({ length: 65 }, () => ({})) }],
    ];
    for (const [reason, minute] of refused) {
      world.test.clock.advance(MINUTE_MS);
      await agent.measure(id, minute as Record<string, unknown>);
      expect(world.test.logged(40).at(-1), reason).toContain(reason);
    }
    world.test.clock.advance(MINUTE_MS);
    await agent.measure(id, ...Array.from({ length: 1_001 }, (_, index) => ({ endedMsAgo: index })));
    expect(world.test.logged(40).at(-1)).toContain('more than 1000 measurements');
    agent.say({ measurementReport: { instances: [{ instanceId: id }, { instanceId: id }] } });
    await agent.speak(id);
    expect(world.test.logged(40).at(-1)).toContain('duplicate');
    expect((await usage(id, '24h')).cpu_cores).toEqual([0.5]);
    // Of GPUs that the instance does not have, nothing is kept.
    await agent.measure(id, { endedMsAgo: 1, cpuMillis: 2, gpus: [{ usePercent: 1 }, { usePercent: 1 }] });
    const [gpu] = (await usage(id, '24h')).gpus;
    expect(gpu?.use_percent).toEqual([7, null]);
  });

  it('gets no more room by sending more, or by sending again', async () => {
    const { agent, id } = await running();
    world.test.advance(HOUR_MS);
    const many = Array.from({ length: 900 }, (_, index) => ({ endedMsAgo: 4_000 * index, cpuMillis: 1 }));
    for (let time = 0; time < 30; time++) await agent.measure(id, ...many);
    expect((await usage(id, '24h')).at.length).toBeLessThanOrEqual(120);
    world.test.advance(11 * MINUTE_MS);
    agent.beat();
    await agent.measure(id, ...many.slice(0, 100));
    world.test.advance(11 * MINUTE_MS);
    expect(rowsOf(id).length).toBeLessThanOrEqual(3);
    expect((await usage(id, '24h')).at.length).toBeLessThanOrEqual(130);
  });

  it('sends no more than twelve reports at once that are read', async () => {
    const { agent, id } = await running();
    world.test.advance(HOUR_MS);
    for (let report = 0; report < 20; report++) await agent.measure(id, { endedMsAgo: (20 - report) * MINUTE_MS });
    expect((await usage(id, '24h')).at).toHaveLength(12);
  });
});

it('an answer of another host than the one that was asked is ignored', async () => {
  const [{ agent, id }, other] = [await running(), await running()];
  await pass(agent, id, 1);
  agent.points = null;
  const asked = usage(id, '1h');
  const { queryId } = await eventually('the query', () => agent.queried[0]);
  other.agent.say({ measurementAnswer: { queryId, points: [{ endedMsAgo: 1, cpuMillis: 9_000 }] } });
  await other.agent.speak(other.id);
  agent.say({ measurementAnswer: { queryId, points: [{ endedMsAgo: 1, cpuMillis: 9e15 }] } });
  await agent.speak(id);
  expect(world.test.logged(40).at(-1)).toContain('no machine can have');
  world.test.clock.advance(6_000);
  expect(await asked).toMatchObject({ resolution_seconds: 60, cpu_cores: [0.5] });
});

it('a host that has told too much of an instance tells of its disk later', async () => {
  const { agent, id } = await running();
  const told = listening(world.test, world.admin.organizationId);
  for (let index = 0; index < 25; index++)
    agent.say({ progress: { instanceId: id, kind: `step_${index}`, message: 'x' } });
  await agent.measure(id, { endedMsAgo: 0, diskUsedBytes: 9.5 * GB });
  expect(told('instance.disk_filling')).toEqual([]);
  world.test.clock.advance(MINUTE_MS);
  await agent.measure(id, { endedMsAgo: 0, diskUsedBytes: 9.5 * GB });
  expect(told('instance.disk_filling')).toHaveLength(1);
});

it('a renter is told once of each step of a disk that fills, and again after it was emptied', async () => {
  const { agent, id } = await running();
  const told = listening(world.test, world.admin.organizationId);
  const steps = async (...percents: number[]) => {
    for (const percent of percents) {
      world.test.advance(MINUTE_MS);
      await agent.measure(id, { endedMsAgo: 0, diskUsedBytes: (percent / 100) * 10 * GB });
    }
    return told('instance.disk_filling').map(({ data }) => data['percent']);
  };
  expect(await steps(50, 89, 90, 91, 97)).toEqual([90]);
  expect(await steps(98, 100, 98)).toEqual([98]);
  expect(await steps(94, 99)).toEqual([]);
  expect(await steps(92, 99)).toEqual([98]);
  expect(await steps(20, 95)).toEqual([90]);
  await world.test.restart();
  await agent.connect();
  expect(await steps(95)).toEqual([]);
  const { items } = await world.admin.api.get<{ items: { kind: string; message: string }[] }>(
    `/v1/instances/${id}/events`,
  );
  expect(items.find(({ kind }) => kind === 'disk_filling')?.message).toMatch(/^90 percent of the disk of 10 GB/);
  // What is not measured is not full.
  world.test.advance(MINUTE_MS);
  await agent.measure(id, { endedMsAgo: 0 });
  expect(told('instance.disk_filling')).toEqual([]);
});
