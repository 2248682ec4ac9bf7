import { randomUUID } from 'node:crypto';
import { afterEach, expect, it } from 'vitest';
import { InstanceNetworks } from '../../agent/runtime/docker/networks/networks.js';
import { Engine } from '../../agent/runtime/docker/engine.js';
import { systemClock } from '../../shared/clock.js';
import { eventually } from '../../scripts/eventually.js';
import { DOCKER_SOCKET, SAMPLE_IMAGE, docker } from '../harness/docker.js';
import { makeRuntime } from '../harness/runtime.js';
import { takePorts } from '../harness/worker.js';
import { specOf } from '../suites/runtime-suite.js';

const ports = takePorts(10);
const PLACE = { first: 0x0ad68000, prefix: 24 };
const READY = 2;
const hosts: string[] = [];
const opened: InstanceNetworks[] = [];

afterEach(async () => {
  for (const networks of opened.splice(0)) await networks.close();
  const label = hosts.splice(0).map((host) => `gpurent.host=${host}`);
  for (const each of label) {
    for (const { Id } of await docker.listContainers({ all: true, filters: { label: [each] } }))
      await docker.getContainer(Id).remove({ force: true });
    for (const { Id } of await docker.listNetworks({ filters: { label: [each] } }))
      await docker.getNetwork(Id).remove();
  }
});

function newHost(): string {
  const host = randomUUID();
  hosts.push(host);
  return host;
}

/** The networks of an agent that has just started. */
async function networksOf(hostId: string, ...kept: string[]): Promise<InstanceNetworks> {
  const networks = new InstanceNetworks(new Engine(DOCKER_SOCKET, systemClock), hostId, PLACE, systemClock, READY);
  opened.push(networks);
  await networks.prune(new Set(kept));
  await networks.open();
  return networks;
}

const namesOf = async (host: string) =>
  (await docker.listNetworks({ filters: { label: [`gpurent.host=${host}`] } })).map(({ Name }) => Name).sort();
const readyOf = async (host: string) => (await namesOf(host)).filter((name) => name.startsWith('gpurent-ready-'));
const filled = (host: string) =>
  eventually('the networks', async () => {
    const ready = await readyOf(host);
    return ready.length === READY && ready;
  });
const networkOf = async (id: string) =>
  (await docker.getContainer(`gpurent-${id}`).inspect()).HostConfig.NetworkMode ?? '';

it('each of those made in advance goes to one instance, and others get their own', async () => {
  const host = newHost();
  const networks = await networksOf(host);
  const ready = await filled(host);
  const ids = [randomUUID(), randomUUID(), randomUUID()];
  const given = await Promise.all(ids.map((id) => networks.provide(id)));
  expect(new Set(given).size).toBe(3);
  expect(given.filter((name) => ready.includes(name))).toHaveLength(READY);
  expect(given.filter((name) => ids.some((id) => name === `gpurent-${id}`))).toHaveLength(1);
  // What was given is never given again, also after its instance.
  for (const id of ids) await networks.remove(id);
  const next = await filled(host);
  expect(next.filter((name) => ready.includes(name))).toEqual([]);
  await networks.close();
  expect(await namesOf(host)).toEqual([]);
});

it('what somebody has removed is given to nobody', async () => {
  const host = newHost();
  const networks = await networksOf(host);
  for (const name of await filled(host)) await docker.getNetwork(name).remove();
  const id = randomUUID();
  expect(await networks.provide(id)).toBe(`gpurent-${id}`);
  await filled(host);
});

it('a workload keeps the one that it has got over a stop and a restart of the agent, also where it was tidied up', async () => {
  const hostId = newHost();
  const runtime = await makeRuntime({ ports, readyNetworks: READY, hostId });
  const ready = await filled(hostId);
  const id = randomUUID();
  await runtime.create(id, 1, specOf(SAMPLE_IMAGE));
  const network = await networkOf(id);
  expect(ready).toContain(network);
  await runtime.stop(id);

  const next = await makeRuntime({ ports, readyNetworks: READY, hostId });
  const left = await readyOf(hostId);
  expect(left).toContain(network);
  // An agent that was killed may have given them to somebody.
  expect(left.filter((name) => ready.includes(name))).toEqual([network]);
  await next.start(id);
  expect(await next.find(id)).toMatchObject({ state: 'running', address: expect.stringMatching(/^10\./) as string });

  await next.stop(id);
  await docker.getNetwork(network).remove();
  await next.start(id);
  const { sshPort, address } = (await next.find(id)) as { sshPort: number; address: string };
  expect(address).toMatch(/^10\./);
  await eventually('SSH', () => next.sshAnswers(sshPort));
  await next.remove(id);
  expect(await readyOf(hostId)).not.toContain(network);
  expect(await namesOf(hostId)).not.toContain(`gpurent-${id}`);
});

it('another process that removes a workload removes its network with it', async () => {
  const hostId = newHost();
  const runtime = await makeRuntime({ ports, readyNetworks: READY, hostId });
  await filled(hostId);
  const id = randomUUID();
  await runtime.create(id, 1, specOf(SAMPLE_IMAGE));
  const network = await networkOf(id);
  await (await makeRuntime({ ports, hostId })).remove(id);
  expect(await namesOf(hostId)).not.toContain(network);
});
