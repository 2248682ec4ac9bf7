import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { SimulatedGpus } from '../../agent/host/gpus/simulated.js';
import { Engine } from '../../agent/runtime/docker/engine.js';
import { UnclaimedGpus, earlierHosts } from '../../agent/runtime/docker/foreign-workloads.js';
import { systemClock } from '../../shared/clock.js';
import { ManualClock } from '../harness/manual-clock.js';
import { DockerDouble } from '../harness/docker-double.js';

let folder: string;
let double: DockerDouble;
let engine: Engine;
let gpus: SimulatedGpus;
let uuids: string[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-foreign-'));
  const socket = join(folder, 'docker.sock');
  double = await DockerDouble.listen(socket);
  engine = new Engine(socket, systemClock);
  gpus = new SimulatedGpus(3, 'test');
  uuids = (await gpus.inventory()).gpus.map(({ uuid }) => uuid);
  const [first = '', second = ''] = uuids;
  double.shown = new Map([
    ['own', 'me'],
    ['old', 'before'],
    ['older', 'before'],
    ['test', 'canary of me'],
  ]);
  double.gpuUuids.set('own', [first]).set('old', [second]).set('test', [first, second]);
  for (const instanceId of double.gpuUuids.keys()) double.running.add(instanceId);
});
afterEach(() => {
  double.close();
  rmSync(folder, { recursive: true });
});

const healthOf = async (driver: UnclaimedGpus) => (await driver.inventory()).gpus.map(({ healthy }) => healthy);

it('GPUs of a workload that runs under an earlier identity are not rented out, and it is said what to do', async () => {
  const driver = new UnclaimedGpus(gpus, engine, 'me', new ManualClock());
  expect(await healthOf(driver)).toEqual([true, false, true]);
  expect((await driver.inventory()).gpus[1]?.reason).toMatch(
    /gpurent-old, which this host has made as machine before, has it: where that machine was not removed, enroll with a token of it; else remove/,
  );
  // What was seen stays so while Docker is away.
  double.close();
  rmSync(join(folder, 'docker.sock'), { force: true });
  expect(await healthOf(driver)).toEqual([true, false, true]);
});

it('they are free once it does not run any more', async () => {
  const driver = new UnclaimedGpus(gpus, engine, 'me', new ManualClock());
  expect(await healthOf(driver)).toEqual([true, false, true]);
  double.running.delete('old');
  expect(await healthOf(driver)).toEqual([true, true, true]);
});

it('an enrollment tells whose workloads are here, and of no test of the agent’s own', async () => {
  expect(await earlierHosts(engine, null)).toEqual([
    { hostId: 'me', workloads: 1 },
    { hostId: 'before', workloads: 2 },
  ]);
});
