import { randomUUID } from 'node:crypto';
import { afterEach, expect, it } from 'vitest';
import { SimulatedGpus } from '../../agent/host/gpus/simulated.js';
import type { DockerRuntime } from '../../agent/runtime/docker/docker-runtime.js';
import { Engine } from '../../agent/runtime/docker/engine.js';
import { UnclaimedGpus, earlierHosts } from '../../agent/runtime/docker/foreign-workloads.js';
import { LABEL } from '../../agent/runtime/docker/labels.js';
import { systemClock } from '../../shared/clock.js';
import { DOCKER_SOCKET, SAMPLE_IMAGE, containersOf } from '../harness/docker.js';
import { makeRuntime } from '../harness/runtime.js';
import { specOf } from '../suites/runtime-suite.js';

const id = randomUUID();
let earlier: DockerRuntime;

afterEach(() => earlier.remove(id));

it('a host that has lost who it is finds what it had made, and gives those GPUs to nobody', async () => {
  earlier = await makeRuntime({ ports: { first: 22_310, last: 22_314 } });
  const gpus = new SimulatedGpus(2, id);
  const [used] = (await gpus.inventory()).gpus;
  await earlier.create(id, 1, specOf(SAMPLE_IMAGE, { gpuUuids: [used?.uuid ?? ''] }));
  const [container] = await containersOf(id);
  const engine = new Engine(DOCKER_SOCKET, systemClock);
  const told = { hostId: container?.Labels[LABEL.host], workloads: 1 };
  expect(await earlierHosts(engine, null)).toContainEqual(told);
  const driver = new UnclaimedGpus(gpus, engine, randomUUID(), systemClock);
  const healthOf = async () => (await driver.inventory()).gpus.map(({ healthy }) => healthy);
  expect(await healthOf()).toEqual([false, true]);
  await earlier.stop(id);
  expect(await healthOf()).toEqual([true, true]);
});
