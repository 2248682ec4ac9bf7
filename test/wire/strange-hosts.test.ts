import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { query } from '../../control-plane/store/sql.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import { FakeAgent } from '../harness/fake-agent.js';
import { fakeGpuUuid } from '../harness/fake-inventory.js';

let test: TestControlPlane;
let renter: Renter;
let templateId: string;

beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
  templateId = await test.template();
});
afterAll(() => test.stop());

const read = (id: string) => renter.api.get<InstanceBody>(`/v1/instances/${id}`);
const stateOf = async (offerId: string) => (await renter.api.get<{ state: string }>(`/v1/offers/${offerId}`)).state;
const workload = (instanceId: string, fields: object = {}) => ({
  instanceId,
  sequence: 1,
  gpuUuids: [],
  observation: { state: 'WORKLOAD_STATE_RUNNING', sshPort: 40_500, runId: '1' },
  ...fields,
});

async function rented(gpus = 1) {
  const agent = await test.host({ gpus });
  const body = { offer_id: await test.offer(agent), template_id: templateId, disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  return { agent, id, offerId: body.offer_id };
}

async function quarantineOf(agent: FakeAgent): Promise<{ id: string; instance_id: string }[]> {
  const { items } = await test.operator.get<{ items: { id: string; instance_id: string; machine_id: string }[] }>(
    '/v1/operator/quarantine',
  );
  return items.filter(({ machine_id }) => machine_id === agent.hostId);
}

describe('a host that still has what the store knows as over', () => {
  it('destroys again what was destroyed, and sells its GPU only then', async () => {
    const { agent, id, offerId } = await rented();
    const gpuUuids = agent.workloads.get(id)?.gpuUuids;
    await renter.api.delete(`/v1/instances/${id}`);
    await statusIs(renter.api, id, 'destroyed');
    agent.automatic = false;
    await agent.claim({ instances: [workload(id, { sequence: 9, gpuUuids })] });
    const command = await eventually('the destroy', () => agent.held[0]);
    expect(command).toMatchObject({ instanceId: id, desired: 'absent', sequence: 10 });
    expect(await stateOf(offerId)).toBe('unavailable');
    agent.done(command);
    await eventually('the offer', async () => (await stateOf(offerId)) === 'available');
    expect((await read(id)).status).toBe('destroyed');
  });

  it('stops what ended, and holds its GPU until it has', async () => {
    const { agent, id, offerId } = await rented();
    const gpuUuids = agent.workloads.get(id)?.gpuUuids;
    agent.vanish(id);
    await statusIs(renter.api, id, 'error');
    agent.automatic = false;
    await agent.claim({ instances: [workload(id, { gpuUuids })] });
    const command = await eventually('the clean-up', () => agent.held[0]);
    expect(command).toMatchObject({ desired: 'stopped', stopped: { releaseGpus: true } });
    expect(await stateOf(offerId)).toBe('unavailable');
    agent.done(command);
    await eventually('the offer', async () => (await stateOf(offerId)) === 'available');
    expect((await read(id)).status).toBe('error');
  });
});

describe('a host that takes its own workload for another host’s instance', () => {
  it('can be told to remove it, and the instance is none the worse', async () => {
    const { agent, id } = await rented();
    const clone = await test.host();
    await clone.claim({ instances: [workload(id, { sequence: 1 })] });
    const [found] = await quarantineOf(clone);
    clone.automatic = false;
    expect((await test.operator.request('POST', `/v1/operator/quarantine/${found?.id}/remove`)).status).toBe(202);
    await eventually('the removal', () => clone.held.some(({ desired }) => desired === 'absent'));
    // The removal is never answered, and all is well with the instance.
    expect((await renter.api.request('POST', `/v1/instances/${id}/stop`)).status).toBe(202);
    await statusIs(renter.api, id, 'stopped');
    await renter.api.post(`/v1/instances/${id}/start`);
    await statusIs(renter.api, id, 'running');
    agent.exit(id, { code: 0 });
    await statusIs(renter.api, id, 'error');
    expect((await renter.api.request('DELETE', `/v1/instances/${id}`)).status).toBe(202);
    await statusIs(renter.api, id, 'destroyed');
  });

  it('also where its machine was removed, and it has enrolled again', async () => {
    const { agent, id } = await rented();
    agent.disconnect();
    await eventually('the host to be away', async () => {
      return !(await test.operator.get<{ connected: boolean }>(`/v1/operator/machines/${agent.hostId}`)).connected;
    });
    await test.operator.post(`/v1/operator/machines/${agent.hostId}/lost`);
    await test.operator.delete(`/v1/operator/machines/${agent.hostId}`);
    const again = await test.host();
    await again.claim({ instances: [workload(id)] });
    const [found] = await quarantineOf(again);
    expect((await test.operator.request('POST', `/v1/operator/quarantine/${found?.id}/remove`)).status).toBe(202);
    await eventually('quarantine to end', async () => (await quarantineOf(again)).length === 0);
  });
});

it('a removal under way keeps its workload in quarantine, whatever the host leaves out', async () => {
  const agent = await test.host({ gpus: 1 });
  const offerId = await test.offer(agent);
  const [gpu] = agent.inventory['gpus'] as { uuid: string }[];
  const instances = [workload(randomUUID(), { gpuUuids: [gpu?.uuid] })];
  await agent.claim({ instances });
  agent.automatic = false;
  const [found] = await quarantineOf(agent);
  await test.operator.request('POST', `/v1/operator/quarantine/${found?.id}/remove`);
  const removal = await eventually('the removal', () => agent.held[0]);
  await agent.claim({ instances: [] });
  expect(await stateOf(offerId)).toBe('unavailable');
  await agent.claim({ instances });
  const adoption = { organization_id: renter.organizationId, template_id: templateId, offer_id: offerId, disk_gb: 10 };
  expect(
    (await test.operator.request('POST', `/v1/operator/quarantine/${found?.id}/adopt`, adoption)).body,
  ).toMatchObject({
    code: 'INVALID_STATE',
  });
  agent.done(removal);
  await eventually('the offer', async () => (await stateOf(offerId)) === 'available');
});

it('a start does not take back GPUs that a workload in quarantine holds', async () => {
  const { agent, id } = await rented();
  await test.operator.post(`/v1/operator/organizations/${renter.organizationId}/dispute`);
  await renter.api.post(`/v1/instances/${id}/stop`);
  await eventually('the release', async () => (await read(id))['gpus_released']);
  await test.operator.delete(`/v1/operator/organizations/${renter.organizationId}/dispute`);
  const gpuUuids = agent.workloads.get(id)?.gpuUuids;
  const known = workload(id, { sequence: 2, gpuUuids, observation: { state: 'WORKLOAD_STATE_STOPPED' } });
  await agent.claim({ instances: [known, workload(randomUUID(), { gpuUuids })] });
  const before = test.dump();
  expect(await renter.api.request('POST', `/v1/instances/${id}/start`)).toMatchObject({
    status: 409,
    body: { code: 'CAPACITY_UNAVAILABLE' },
  });
  expect(test.dump()).toEqual(before);
});

describe('what no honest host would say', () => {
  it.each([
    ['a thousand and one workloads', { instances: Array.from({ length: 1_001 }, () => workload(randomUUID())) }],
    ['one workload twice', { instances: ['a', 'b'].map(() => workload('11111111-1111-4111-8111-111111111111')) }],
    ['a workload without a proper id', { instances: [workload('../../etc')] }],
    ['a sequence beyond all numbers', { instances: [workload(randomUUID(), { sequence: 2 ** 40 })] }],
  ])('%s: is refused before any of it is kept', async (_what, hello) => {
    const agent = await test.host();
    const before = test.dump();
    await expect(agent.claim(hello)).rejects.toThrow('instances');
    expect(test.dump()).toEqual(before);
    await agent.connect();
  });

  it.each([
    ['name', 'x'.repeat(65)],
    ['name', 'cheap \u202e'],
    ['region', 'eu\u001b[2J'],
    ['gpus', [{ uuid: fakeGpuUuid(1, 1), index: 0, model: 'H100\u2067', memoryMb: 1, healthy: true }]],
    ['publicAddress', 'not an address; $(reboot)'],
    ['diskGb', 2_000_000_000],
    [
      'gpus',
      Array.from({ length: 65 }, (_, index) => ({
        uuid: fakeGpuUuid(1, index),
        index,
        model: 'm',
        memoryMb: 1,
        healthy: true,
      })),
    ],
  ])('%s', async (field, value) => {
    const agent = await test.host();
    const before = test.dump();
    await expect(agent.claim({ inventory: { ...agent.inventory, [field]: value } })).rejects.toThrow(field);
    expect(test.dump()).toEqual(before);
  });
});

it.each<[string, (uuid: string) => string]>([
  ['in capitals', (uuid) => uuid.toUpperCase()],
  ['with a space', (uuid) => `${uuid} `],
  ['without its beginning', (uuid) => uuid.slice(4)],
  ['without hyphens', (uuid) => `GPU-${uuid.slice(4).replaceAll('-', '')}`],
  ['shortened, as Docker takes it, too', (uuid) => uuid.slice(0, 12)],
  ['with a digit of another script', (uuid) => uuid.replace('4', '\u0664')],
])('a card is known by one spelling: its UUID %s is refused with a reason', async (_, spell) => {
  const agent = await test.host({ gpus: 1 });
  const [gpu] = agent.inventory['gpus'] as { uuid: string }[];
  const again = { ...gpu, uuid: spell(gpu?.uuid ?? '') };
  const before = test.dump();
  const inventory = { ...agent.inventory, gpus: [gpu, again] };
  await expect(agent.claim({ inventory })).rejects.toThrow('gpus: has a UUID that is not "GPU-" and a UUID');
  expect(test.dump()).toEqual(before);
  await expect(test.host({ givenGpus: [again] })).rejects.toThrow('gpus: has a UUID that is not');
  const held = { ...workload(randomUUID()), gpuUuids: [again.uuid] };
  await expect(agent.claim({ instances: [held] })).rejects.toThrow('with a GPU UUID that no driver gives');
});

it('a host that takes nothing more holds up no other', async () => {
  const [deaf, good] = [await rented(), await rented()];
  deaf.agent.disconnect();
  const { connections } = test.core.platform;
  await eventually('the host to be away', () => !connections.isConnected(deaf.agent.hostId));
  connections.attach(deaf.agent.hostId, { congested: true, send: () => false, close: () => {} });
  for (let count = 0; count < 300; count++) await renter.api.delete(`/v1/instances/${deaf.id}`);
  expect((await renter.api.request('POST', `/v1/instances/${good.id}/stop`)).status).toBe(202);
  await statusIs(renter.api, good.id, 'stopped');
});

it('a host cannot say what only the platform says', async () => {
  const { agent, id } = await rented();
  const say = (kind: string) => agent.say({ progress: { instanceId: id, kind, message: `${kind} by its host` } });
  for (const kind of ['destroyed', 'created', 'destroy_scheduled', 'workload_lost', 'running', 'odd']) say(kind);
  const events = async () =>
    (await renter.api.get<{ items: { kind: string; message: string }[] }>(`/v1/instances/${id}/events`)).items;
  await eventually('the last one', async () => (await events())[0]?.kind === 'odd');
  const told = (await events()).filter(({ message }) => message.endsWith('by its host'));
  expect(told.map(({ kind }) => kind)).toEqual(['odd', 'note', 'note', 'note', 'note', 'note']);
  expect(await events()).toContainEqual(
    expect.objectContaining({ kind: 'running', message: expect.stringContaining('is up') as string }),
  );
});

it('a host that says ever new words of an instance is heard twenty times, and once every ten seconds', async () => {
  const { agent, id } = await rented();
  const kinds = async () => {
    const { items } = await renter.api.get<{ items: { kind: string }[] }>(`/v1/instances/${id}/events`);
    return items.map(({ kind }) => kind);
  };
  const say = (kind: string) => agent.say({ progress: { instanceId: id, kind, message: kind } });
  for (let count = 0; count < 100; count++) say(count % 2 ? 'odd' : 'even');
  await agent.speak(id);
  expect((await kinds()).filter((kind) => kind === 'odd' || kind === 'even')).toHaveLength(20);
  test.clock.advance(10_000);
  for (const kind of ['one', 'two']) say(kind);
  await agent.speak(id);
  expect((await kinds()).filter((kind) => kind === 'one' || kind === 'two')).toEqual(['one']);
});

describe('a workload that comes up after its host has said what it has', () => {
  it('makes the host say it again, and is set apart', async () => {
    const agent = await test.host({ gpus: 1 });
    const id = randomUUID();
    const gpuUuids = (agent.inventory['gpus'] as { uuid: string }[]).map(({ uuid }) => uuid);
    agent.workloads.set(id, { state: 'WORKLOAD_STATE_RUNNING', sequence: 1, sshPort: 40_600, gpuUuids, lines: [] });
    agent.beat();
    await eventually('the stream to end', () => !agent.connected);
    await agent.connect();
    expect(await quarantineOf(agent)).toMatchObject([{ instance_id: id }]);
    agent.beat();
    await agent.speak(id);
    expect(agent.connected).toBe(true);
  });
});

describe('a heartbeat of what no honest host would say', () => {
  it.each([
    ['a run with an endless name', [{ instanceId: randomUUID(), runId: 'x'.repeat(65), runningMs: 1 }]],
    [
      'more workloads than a host can have',
      Array.from({ length: 1_001 }, () => ({ instanceId: randomUUID(), runId: '1', runningMs: 1 })),
    ],
  ])('%s: none of it is kept', async (_what, running) => {
    const { agent, id } = await rented();
    const gpus = agent.inventory['gpus'];
    const known = { instanceId: id, runId: 'another-run', runningMs: 1 };
    agent.say({ heartbeat: { dockerAvailable: true, gpus, running: [...running, known], diskFreeGb: 0 } });
    await agent.speak(id);
    expect(test.everythingStored()).not.toContain('another-run');
  });
});

it('a host that invents ever new GPUs is remembered with so many, and what is rented is not forgotten', async () => {
  const { agent, id } = await rented();
  const [own] = agent.inventory['gpus'] as { uuid: string }[];
  const inventing = (round: number) => [
    own,
    ...Array.from({ length: 60 }, (_, index) => ({ ...own, uuid: fakeGpuUuid(round, index), index })),
  ];
  for (let round = 0; round < 20; round++) agent.say({ heartbeat: { dockerAvailable: true, gpus: inventing(round) } });
  await agent.speak(id);
  const { gpus } = await test.operator.get<{ gpus: { uuid: string; instance_id: string | null }[] }>(
    `/v1/operator/machines/${agent.hostId}`,
  );
  const known = test.core.platform.store.transact((tx) =>
    tx.all(query.selectFrom('gpus').select('uuid').where('machine_id', '=', agent.hostId)),
  );
  expect(known.length).toBeLessThanOrEqual(256);
  expect(gpus).toContainEqual(expect.objectContaining({ uuid: own?.uuid, instance_id: id }));
});

it('a host that tells of endless output, and of a run with an endless name, is remembered with so much', async () => {
  const { agent, id } = await rented();
  const say = async (state: string, runId: string, lastLines: string[]) => {
    const exit = state === 'WORKLOAD_STATE_STOPPED' ? { code: 1, ranMs: 1, lastLines } : undefined;
    agent.say({
      workloadReport: { instanceId: id, number: ++number, sequence: 1, observation: { state, runId, exit } },
    });
    await agent.roundTrip();
  };
  let number = 1_000;
  await say('WORKLOAD_STATE_RUNNING', 'r'.repeat(900_000), []);
  expect(test.everythingStored()).not.toContain('r'.repeat(65));
  await say('WORKLOAD_STATE_STOPPED', '', ['first', 'x'.repeat(900_000), 'last']);
  const stored = test.everythingStored();
  expect(stored).toContain('xx\\\",\\\"last');
  expect(stored).not.toContain('x'.repeat(64 * 1024));
});

it('a name of which people do not see all enrolls no host, and keeps no host away that has it', async () => {
  await expect(test.host({ name: 'gpu\u200b-1' })).rejects.toThrow('name: has characters that are not shown');
  const agent = await test.host({ name: 'gpu-1' });
  agent.inventory['name'] = 'gpu\u200b-1';
  agent.inventory['region'] = '\u3164';
  await agent.connect();
  const { name, region, connected } = await test.operator.get<Record<string, unknown>>(
    `/v1/operator/machines/${agent.hostId}`,
  );
  expect({ name, region, connected }).toEqual({ name: 'gpu\ufffd-1', region: '\ufffd', connected: true });
});
