import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { afterEach, expect, it } from 'vitest';
import { describeLeft } from '../../agent/domain/left-behind.js';
import { SimulatedGpus } from '../../agent/host/gpus/simulated.js';
import type { DockerRuntime } from '../../agent/runtime/docker/docker-runtime.js';
import { Engine } from '../../agent/runtime/docker/engine.js';
import { UnclaimedGpus, earlierHosts, foreignWorkloads } from '../../agent/runtime/docker/foreign-workloads.js';
import { LABEL } from '../../agent/runtime/docker/labels.js';
import { systemClock } from '../../shared/clock.js';
import { DOCKER_SOCKET, SAMPLE_IMAGE, containersOf } from '../harness/docker.js';
import { makeRuntime } from '../harness/runtime.js';
import { takePorts } from '../harness/worker.js';
import { specOf } from '../suites/runtime-suite.js';

const id = randomUUID();
let earlier: DockerRuntime;

afterEach(() => earlier.remove(id));

it('a host that has lost who it is finds what it had made, and gives those GPUs to nobody', async () => {
  earlier = await makeRuntime({ ports: takePorts(5) });
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

it('the commands that its owner is given remove what such a host has left, and nothing else', async () => {
  earlier = await makeRuntime({ ports: takePorts(5) });
  const other = await makeRuntime({ ports: takePorts(5) });
  const otherId = randomUUID();
  await earlier.create(id, 1, specOf(SAMPLE_IMAGE));
  await other.create(otherId, 1, specOf(SAMPLE_IMAGE));
  const [container] = await containersOf(id);
  const hostId = container?.Labels[LABEL.host];
  const left = await foreignWorkloads(new Engine(DOCKER_SOCKET, systemClock), null);
  const [told] = describeLeft(left.filter((each) => each.hostId === hostId));
  const commands = told?.advice.replace(/^.*?: /, '') ?? 'false';
  execFileSync('sh', ['-ec', commands], { env: { ...process.env, DOCKER_HOST: `unix://${DOCKER_SOCKET}` } });
  expect(await containersOf(id)).toEqual([]);
  expect(await containersOf(otherId)).toHaveLength(1);
  await other.remove(otherId);
});
