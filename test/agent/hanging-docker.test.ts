import { EventEmitter } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { assembleAgent, type Agent } from '../../agent/assemble.js';
import { Journal } from '../../agent/journal/journal.js';
import type { Wire } from '../../agent/link/dial.js';
import { eventually } from '../../scripts/eventually.js';
import type { AgentMessage, Heartbeat } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { silentLogger } from '../../shared/logger.js';
import { PROTOCOL_MAX } from '../../shared/protocol.js';
import { BusyGpus } from '../harness/busy-gpus.js';
import { FakeRuntime } from '../harness/fake-runtime.js';
import { INVENTORY } from '../harness/inventory.js';
import { ManualClock } from '../harness/manual-clock.js';

const HEARTBEAT_MS = 10_000;
/** After which the control plane takes a silent host for gone. */
const LIVENESS_MS = 30_000;

let agent: Agent;
let folder: string;
let clock: ManualClock;
let runtime: FakeRuntime;
let beats: { at: number; heartbeat: Heartbeat }[];
let diskFreeGb: () => Promise<number>;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-hanging-'));
  clock = new ManualClock();
  runtime = new FakeRuntime(clock);
  beats = [];
  diskFreeGb = async () => 100;
  const gpus = new BusyGpus(1, 'test');
  const wire = Object.assign(new EventEmitter(), {
    cancel: () => undefined,
    write: ({ message }: AgentMessage) => {
      if (message?.$case === 'heartbeat') beats.push({ at: clock.monotonic(), heartbeat: message.value });
      if (message?.$case !== 'hello') return true;
      const value = { protocol: PROTOCOL_MAX, epoch: 1, incarnation: 'i', floors: [], heartbeatMs: HEARTBEAT_MS };
      setImmediate(() => wire.emit('data', { message: { $case: 'welcome', value } }));
      return true;
    },
  });
  agent = assembleAgent({
    runtime,
    isolated: runtime,
    docker: {
      isAvailable: async () => true,
      startedAt: async () => 0,
      keepsWorkloads: async () => false,
      events: () => new Promise(() => {}),
    },
    canary: { answers: async () => true, obstacle: '' },
    gpus,
    dial: () => wire as unknown as Wire,
    clock,
    random: () => 0.5,
    logger: silentLogger,
    journal: new Journal(join(folder, 'journal.db')),
    web: {
      portGuard: { scheme: 'http', set: async () => {}, complete: () => {} },
      addressOf: async () => '',
      answers: async () => true,
    },
    upkeep: {},
    prepare: async () => {},
    describe: async () => ({ ...INVENTORY, gpus: (await gpus.inventory()).gpus }),
    diskFreeGb: () => diskFreeGb(),
    boot: async () => ({ id: 'b', at: 0 }),
  });
  await agent.start();
  await eventually('the first heartbeat', () => beats.length > 0);
});
afterEach(async () => {
  runtime.letGo('list');
  await agent.stop();
  rmSync(folder, { recursive: true });
});

it('a Docker that hangs does not keep the host from being heard, and is told of', async () => {
  expect(beats[0]?.heartbeat.dockerAvailable).toBe(true);
  const answer = runtime.hold('list');
  diskFreeGb = () => new Promise(() => {});
  const from = beats.length;
  await eventually('some heartbeats', () => {
    clock.advance(500);
    return beats.length > from + 4;
  });
  const heard = beats.slice(from + 1);
  expect(heard.map(({ heartbeat }) => heartbeat.dockerAvailable)).not.toContain(true);
  const gaps = heard.slice(1).map(({ at }, index) => at - (heard[index]?.at ?? 0));
  expect(Math.max(...gaps)).toBeLessThanOrEqual(LIVENESS_MS / 2);
  answer();
  diskFreeGb = async () => 100;
  await eventually('Docker to be back', () => {
    clock.advance(500);
    return beats.at(-1)?.heartbeat.dockerAvailable;
  });
});
