import { request, type RequestOptions } from 'node:http';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { notTested } from '../../agent/domain/gpu-verdict.js';
import { Upkeep } from '../../agent/host/upkeep.js';
import { StatusServer, askAgent } from '../../agent/status/status-server.js';
import { silentLogger } from '../../shared/logger.js';
import { PacedLog } from '../../shared/paced-log.js';
import { eventually } from '../../scripts/eventually.js';
import { ManualClock } from '../harness/manual-clock.js';
import { freePort } from '../harness/webhook-receiver.js';

let clock: ManualClock;
let upkeep: Upkeep;
/** How often each task has run. */
let runs: { first: number; second: number };
/** Ends the first task. */
let end: () => void;
/** The first task waits for its end. */
let isSlow: boolean;

beforeEach(() => {
  clock = new ManualClock();
  runs = { first: 0, second: 0 };
  end = () => undefined;
  isSlow = false;
  const tasks = {
    first: async () => {
      runs.first++;
      if (isSlow) await new Promise<void>((resolve) => (end = resolve));
      throw new Error('fails');
    },
    second: async () => void runs.second++,
  };
  upkeep = new Upkeep(tasks, clock, new PacedLog(clock, silentLogger));
});
afterEach(() => upkeep.stop());

it('the tasks run every 30 seconds, also those after one that fails', async () => {
  upkeep.start();
  for (const round of [1, 2]) {
    clock.advance(29_999);
    expect(runs).toEqual({ first: round - 1, second: round - 1 });
    clock.advance(1);
    await eventually('the run', () => runs.second === round);
    await eventually('the next timer', () => clock.waiting === 1);
  }
});

it('a request runs them at once; requests during a run share the next one', async () => {
  isSlow = true;
  const under = upkeep.runNow();
  await eventually('the first task', () => runs.first === 1);
  isSlow = false;
  const later = [upkeep.runNow(), upkeep.runNow()];
  expect(runs).toEqual({ first: 1, second: 0 });
  end();
  await Promise.all([under, ...later]);
  expect(runs).toEqual({ first: 2, second: 2 });
});

it('only the owner of the host may ask for it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gpurent-upkeep-'));
  const socketPath = join(folder, 'agent.sock');
  const testGpus = async () => notTested('no GPU is free');
  const agent = { snapshot: () => Promise.reject(new Error('not asked')), runUpkeep: () => upkeep.runNow(), testGpus };
  const loopback = { host: '127.0.0.1', port: await freePort() };
  const server = new StatusServer(agent, socketPath, loopback);
  const asked = (method: string, at: RequestOptions, path = '/upkeep') =>
    new Promise<number>((resolve, reject) => {
      const asking = request({ ...at, path, method }, (response) => resolve(response.statusCode ?? 0));
      asking.on('error', reject).end();
    });
  await server.open();
  await server.openMetrics();
  try {
    expect(await asked('GET', { socketPath })).toBe(404);
    expect(await asked('POST', loopback)).toBe(404);
    expect(runs.second).toBe(0);
    expect(await asked('POST', { socketPath })).toBe(204);
    expect(runs.second).toBe(1);
    expect(await asked('POST', loopback, '/gpu-test')).toBe(404);
    expect(JSON.parse(await askAgent(socketPath, '/gpu-test'))).toEqual(notTested('no GPU is free'));
  } finally {
    server.close();
    rmSync(folder, { recursive: true });
  }
});
