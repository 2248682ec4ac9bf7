import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { statusIs } from '../harness/control-plane.js';
import { containersOf } from '../harness/docker.js';
import { eventually } from '../../scripts/eventually.js';
import { RealPlatform, RealRenter, fingerprintOf } from '../harness/real.js';

const LONG_MS = 180_000;

let real: RealPlatform;
let renter: RealRenter;

beforeAll(async () => {
  real = await RealPlatform.start();
  renter = await RealRenter.on(real);
});
afterAll(() => real.stop());

async function agrees(id: string): Promise<InstanceBody> {
  const up = await statusIs(renter.api, id, 'running', LONG_MS);
  const containers = await containersOf(id);
  expect(containers.map(({ State }) => State)).toEqual(['running']);
  expect(await renter.ssh(up, 'echo here')).toBe('here');
  return up;
}

it('kill -9 of the control plane right after it has answered: what was recorded comes up', async () => {
  const created = await renter.deploy();
  expect(created.status).toBe('creating');
  await real.killControlPlane();
  await real.startControlPlane();
  await agrees(created.id);
  const { items } = await renter.api.get<{ items: InstanceBody[] }>('/v1/instances');
  expect(items.map(({ id }) => id)).toEqual([created.id]);
  await renter.destroy(created.id);
});

it('kill -9 of the control plane while the host is creating: nothing is touched or made twice', async () => {
  const created = await renter.deploy();
  await eventually('the container', async () => (await containersOf(created.id)).length > 0, LONG_MS);
  await real.killControlPlane();
  await eventually('the workload', async () => (await containersOf(created.id))[0]?.State === 'running', LONG_MS);
  const before = await fingerprintOf(created.id);
  await real.startControlPlane();
  await agrees(created.id);
  expect(await fingerprintOf(created.id)).toEqual(before);
  await renter.destroy(created.id);
});

it('kill -9 of the agent while it runs one: the workload is never touched', async () => {
  const { id } = await renter.deploy();
  const up = await agrees(id);
  const before = await fingerprintOf(id);
  await real.killAgent();
  expect(await renter.ssh(up, 'echo still here')).toBe('still here');
  expect((await renter.api.get<InstanceBody>(`/v1/instances/${id}`)).status).toBe('running');
  await real.startAgent();
  await agrees(id);
  expect(await fingerprintOf(id)).toEqual(before);

  await renter.api.post(`/v1/instances/${id}/stop`);
  await statusIs(renter.api, id, 'stopped', LONG_MS);
  await renter.destroy(id);
  expect(await containersOf(id)).toEqual([]);
});

it('what brings a workload down can be done in a process of its own, beside the agent', async () => {
  const { id } = await renter.deploy();
  await agrees(id);
  const found = async () => JSON.parse((await real.ask('carry-out', 'find', id)).stdout) as { state: string };
  expect(await found()).toMatchObject({ state: 'running', instanceId: id });
  await renter.api.post(`/v1/instances/${id}/stop`);
  await statusIs(renter.api, id, 'stopped', LONG_MS);
  expect(await real.ask('carry-out', 'stop', id)).toMatchObject({ code: 0, stdout: 'null' });
  expect(await found()).toMatchObject({ state: 'stopped', instanceId: id });
  await renter.destroy(id);
  expect((await real.ask('carry-out', 'remove', id)).code).toBe(0);
  expect(await found()).toEqual({ state: 'absent' });
});

it('an agent that has lost its journal finds its workloads by their labels', async () => {
  const { id } = await renter.deploy();
  await agrees(id);
  const before = await fingerprintOf(id);
  await real.killAgent();
  real.loseJournal();
  await real.startAgent();
  await agrees(id);
  expect(await fingerprintOf(id)).toEqual(before);
  await renter.destroy(id);
});
