import BetterSqlite3 from 'better-sqlite3';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane, statusIs } from '../harness/control-plane.js';
import type { FakeAgent } from '../harness/fake-agent.js';

const GRAIN_MS = 60_000;

let test: TestControlPlane;
let watcher: BetterSqlite3.Database;
let agent: FakeAgent;

beforeAll(async () => {
  test = await TestControlPlane.start();
  watcher = new BetterSqlite3(test.databaseFile, { readonly: true });
  agent = await test.host({ gpus: 2 });
});
afterEach(() => vi.restoreAllMocks());
afterAll(async () => {
  watcher.close();
  await test.stop();
});

/** Changes with each commit of the control plane. */
const commits = () => watcher.pragma('data_version', { simple: true });

interface Machine {
  last_seen_at: string;
  cpu_model: string;
  gpus: { uuid: string; healthy: boolean }[];
}
const machine = () => test.operator.get<Machine>(`/v1/operator/machines/${agent.hostId}`);

/** Sends a heartbeat and waits until it has been handled: the answer to what follows it comes after it. */
async function beat(fields: Record<string, unknown> = {}): Promise<void> {
  const { connections } = test.core.platform;
  const heard = vi.spyOn(connections, 'setRunning');
  agent.say({ heartbeat: { dockerAvailable: true, gpus: agent.inventory['gpus'], diskFreeGb: 1_000, ...fields } });
  await eventually('the heartbeat', () => heard.mock.results.length > 0);
  heard.mockRestore();
}

it('a hello that says nothing new writes nothing', async () => {
  await agent.connect();
  test.advance(1);
  const before = commits();
  for (let times = 0; times < 3; times++) await agent.connect();
  expect(commits()).toBe(before);
});

it('a hello with another inventory, other GPUs or another boot is written', async () => {
  const { inventory } = agent;
  const [first, second] = inventory['gpus'] as Record<string, unknown>[];
  await agent.claim({ inventory: { ...inventory, cpuModel: 'Newer CPU' } });
  expect((await machine()).cpu_model).toBe('Newer CPU');
  await agent.claim({ inventory: { ...inventory, gpus: [first, { ...second, healthy: false, reason: 'hot' }] } });
  expect((await machine()).gpus.map(({ healthy }) => healthy)).toEqual([true, false]);
  await agent.claim({ inventory: { ...inventory, gpus: [first, { ...second, memoryMb: 1 }] } });
  await agent.claim({ inventory: { ...inventory, gpus: [first] } });
  expect((await machine()).gpus).toHaveLength(1);
  await agent.connect();
  expect((await machine()).gpus.map(({ healthy }) => healthy)).toEqual([true, true]);
  const before = commits();
  await agent.claim({ bootId: 'another boot' });
  expect(commits()).not.toBe(before);
});

it('a heartbeat that says nothing new does not use the database', async () => {
  await beat();
  const used = vi.spyOn(test.core.platform.store, 'transact');
  await beat();
  expect(used).not.toHaveBeenCalled();
});

it('a GPU that fails between two hellos is written, and so is its recovery', async () => {
  const [first, second] = agent.inventory['gpus'] as Record<string, unknown>[];
  await beat();
  await beat({ gpus: [first, { ...second, healthy: false, reason: 'hot' }] });
  expect((await machine()).gpus.map(({ healthy }) => healthy)).toEqual([true, false]);
  await beat();
  expect((await machine()).gpus.map(({ healthy }) => healthy)).toEqual([true, true]);
});

it('when a host was last heard is written once a minute, for all hosts at once', async () => {
  test.advance(GRAIN_MS + 1);
  await beat();
  test.advance(0);
  const { last_seen_at } = await machine();
  expect(Date.parse(last_seen_at)).toBe(test.clock.now());
  test.advance(GRAIN_MS / 2);
  await beat();
  test.advance(0);
  expect((await machine()).last_seen_at).toBe(last_seen_at);
  const other = await test.host();
  test.advance(GRAIN_MS + 1);
  await beat();
  other.beat();
  await eventually('the other one', () => test.core.platform.connections.findUnwritten(GRAIN_MS, 10).length === 2);
  const used = vi.spyOn(test.core.platform.store, 'transact');
  const before = used.mock.calls.length;
  test.core.workers.runAll();
  expect(used.mock.calls.length).toBeGreaterThan(before);
  expect(test.core.platform.connections.findUnwritten(GRAIN_MS, 10)).toEqual([]);
});

it('a heartbeat with a run writes its usage every thirty seconds, and reads its workloads each time', async () => {
  const renter = await test.renter();
  const deploy = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', deploy);
  test.advance(0);
  await statusIs(renter.api, id, 'running');
  const attested = () =>
    (
      watcher.prepare('SELECT attested_to FROM meter_intervals WHERE instance_id = ?').get(id) as {
        attested_to: number;
      }
    ).attested_to;
  const run = () => [...agent.workloads].map(([instanceId, { runId }]) => ({ instanceId, runId, runningMs: ranMs }));
  let ranMs = 1_000;
  const pass = async (ms: number) => {
    test.clock.advance(ms);
    ranMs += ms;
    await beat({ running: run() });
  };
  await pass(1_000);
  const first = attested();
  await pass(10_000);
  expect(attested()).toBe(first);
  await pass(20_000);
  expect(attested()).toBeGreaterThan(first + 29_000);
});
