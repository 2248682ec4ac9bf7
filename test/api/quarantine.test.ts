import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import type { FakeAgent } from '../harness/fake-agent.js';

interface Quarantined {
  id: string;
  machine_id: string;
  instance_id: string;
  state: string;
  gpu_uuids: string[];
  disk_gb: number;
}

interface AuditPage {
  items: { id: number }[];
  next_cursor: string | null;
}

let test: TestControlPlane;
let renter: Renter;
let templateId: string;

beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
  templateId = await test.template();
});
afterAll(() => test.stop());

const quarantineOf = async (agent: FakeAgent) =>
  (await test.operator.get<{ items: Quarantined[] }>('/v1/operator/quarantine')).items.filter(
    ({ machine_id }) => machine_id === agent.hostId,
  );

async function gpusOf(agent: FakeAgent): Promise<{ uuid: string; instance_id: string | null }[]> {
  const machine = await test.operator.get<{ gpus: { uuid: string; instance_id: string | null }[] }>(
    `/v1/operator/machines/${agent.hostId}`,
  );
  return machine.gpus;
}

/** A host with one GPU that has a workload on it which the store has never heard of. */
async function strange(state: 'RUNNING' | 'STOPPED' = 'RUNNING') {
  const agent = await test.host({ gpus: 1 });
  const offerId = await test.offer(agent);
  const [gpu] = await gpusOf(agent);
  const instanceId = randomUUID();
  agent.disconnect();
  agent.workloads.set(instanceId, {
    state: `WORKLOAD_STATE_${state}`,
    sequence: 7,
    sshPort: 40_123,
    gpuUuids: [gpu?.uuid ?? ''],
    diskGb: 40,
    lines: [],
  });
  await agent.connect();
  const [found] = await quarantineOf(agent);
  if (!found) throw new Error('nothing is in quarantine');
  const adoption = { organization_id: renter.organizationId, template_id: templateId, offer_id: offerId, disk_gb: 10 };
  return { agent, offerId, instanceId, found, adoption, gpu };
}

const availableGb = async (offerId: string) =>
  (await renter.api.get<{ machine: { disk_available_gb: number } }>(`/v1/offers/${offerId}`)).machine.disk_available_gb;

it('it holds its disk until it is gone, and an adoption may take that', async () => {
  const { agent, offerId, instanceId, found, adoption } = await strange();
  expect(found.disk_gb).toBe(40);
  expect(await availableGb(offerId)).toBe(960);
  const path = `/v1/operator/quarantine/${found.id}/adopt`;
  expect(await test.operator.request('POST', path, { ...adoption, disk_gb: 1_001 })).toMatchObject({ status: 422 });
  const adopted = await test.operator.request('POST', path, { ...adoption, disk_gb: 1_000 });
  expect(adopted.status).toBe(201);
  expect(await availableGb(offerId)).toBe(0);
  await renter.api.delete(`/v1/instances/${instanceId}`);
  await statusIs(renter.api, instanceId, 'destroyed');
  expect(await availableGb(offerId)).toBe(1_000);
  agent.close();
});

it('a workload that the store has never heard of is left alone, and holds its GPUs', async () => {
  const { agent, offerId, instanceId, found, gpu } = await strange();
  expect(found).toMatchObject({ instance_id: instanceId, state: 'running', gpu_uuids: [gpu?.uuid] });
  expect(agent.received).toEqual([]);
  expect(await renter.api.get(`/v1/offers/${offerId}`)).toMatchObject({ state: 'unavailable' });
  const deploy = { offer_id: offerId, template_id: templateId, disk_gb: 10 };
  expect((await renter.api.request('POST', '/v1/instances', deploy)).body).toMatchObject({ code: 'OFFER_UNAVAILABLE' });
  expect(await test.operator.request('DELETE', `/v1/operator/machines/${agent.hostId}`)).toMatchObject({
    body: { code: 'MACHINE_IN_USE' },
  });
});

it('leaves quarantine by itself when the host no longer has it', async () => {
  const { agent, offerId, instanceId } = await strange();
  agent.disconnect();
  agent.workloads.delete(instanceId);
  await agent.connect();
  expect(await quarantineOf(agent)).toEqual([]);
  expect(await renter.api.get(`/v1/offers/${offerId}`)).toMatchObject({ state: 'available' });
});

it('is removed by an operator, and frees its GPUs once the host has done it', async () => {
  const { agent, offerId, instanceId, found } = await strange();
  agent.automatic = false;
  expect((await test.operator.request('POST', `/v1/operator/quarantine/${found.id}/remove`)).status).toBe(202);
  const command = await eventually('the removal', () => agent.held[0]);
  expect(command).toMatchObject({ instanceId, desired: 'absent', sequence: 8 });
  expect(await renter.api.get(`/v1/offers/${offerId}`)).toMatchObject({ state: 'unavailable' });
  agent.stale(command, 20);
  agent.held.length = 0;
  test.advance(60_000);
  const parties = [() => agent.roundTrip()];
  const again = await advanceUntil('the removal again', { clock: test, stepMs: 1_000, parties }, () => agent.held[0]);
  expect(again).toMatchObject({ commandId: command.commandId, sequence: 21 });
  agent.done(again);
  await eventually('the offer', async () => {
    agent.beat();
    return (await renter.api.get<{ state: string }>(`/v1/offers/${offerId}`)).state === 'available';
  });
  expect(await quarantineOf(agent)).toEqual([]);
});

it('is removed above the highest number that its host has ever named, also after that has lost its journal', async () => {
  const { agent, instanceId, found } = await strange();
  agent.disconnect();
  const workload = agent.workloads.get(instanceId);
  if (workload) workload.sequence = 3;
  await agent.connect();
  agent.automatic = false;
  await test.operator.post(`/v1/operator/quarantine/${found.id}/remove`);
  expect(await eventually('the removal', () => agent.held[0])).toMatchObject({ desired: 'absent', sequence: 8 });
});

it('is removed above its own earlier removals, should it be back', async () => {
  const { agent, instanceId, found } = await strange();
  const before = agent.workloads.get(instanceId);
  await test.operator.post(`/v1/operator/quarantine/${found.id}/remove`);
  await eventually('it to be gone', async () => {
    agent.beat();
    return (await quarantineOf(agent)).length === 0;
  });
  agent.disconnect();
  if (before) agent.workloads.set(instanceId, before);
  await agent.connect();
  agent.automatic = false;
  const [again] = await quarantineOf(agent);
  await test.operator.post(`/v1/operator/quarantine/${again?.id}/remove`);
  expect(await eventually('the removal', () => agent.held[0])).toMatchObject({ desired: 'absent', sequence: 9 });
});

it.each(['RUNNING', 'STOPPED'] as const)(
  '%s, it is adopted as the instance that its host takes it for',
  async (state) => {
    const { agent, instanceId, found, adoption, gpu } = await strange(state);
    const path = `/v1/operator/quarantine/${found.id}/adopt`;
    const adopted = await test.operator.post<InstanceBody>(path, adoption);
    expect(adopted).toMatchObject({ id: instanceId, status: state.toLowerCase(), spend_micro: 0 });
    expect(await renter.api.get(`/v1/instances/${instanceId}`)).toMatchObject({
      ssh_port: state === 'RUNNING' ? 40_123 : null,
    });
    expect(await quarantineOf(agent)).toEqual([]);
    expect(await gpusOf(agent)).toMatchObject([{ uuid: gpu?.uuid, instance_id: instanceId }]);
    if (state === 'RUNNING') {
      await renter.api.post(`/v1/instances/${instanceId}/stop`);
      await statusIs(renter.api, instanceId, 'stopped');
    }
    await renter.api.post(`/v1/instances/${instanceId}/start`);
    await statusIs(renter.api, instanceId, 'running');
    expect(agent.received.every(({ sequence }) => sequence > 7)).toBe(true);
  },
);

it('adoption refuses what does not fit, and changes nothing', async () => {
  const { found, adoption } = await strange();
  const other = await strange();
  const path = `/v1/operator/quarantine/${found.id}/adopt`;
  const nowhere = randomUUID();
  const before = test.dump();
  for (const [fields, code] of [
    [{ organization_id: nowhere }, 'ORGANIZATION_NOT_FOUND'],
    [{ template_id: nowhere }, 'TEMPLATE_NOT_FOUND'],
    [{ offer_id: other.offerId }, 'OFFER_NOT_FOUND'],
    [{ disk_gb: 9 }, 'VALIDATION_FAILED'],
  ] as const) {
    expect((await test.operator.request('POST', path, { ...adoption, ...fields })).body).toMatchObject({ code });
  }
  expect(await test.operator.request('POST', `/v1/operator/quarantine/${nowhere}/adopt`, adoption)).toMatchObject({
    status: 404,
    body: { code: 'QUARANTINE_NOT_FOUND' },
  });
  expect(test.dump()).toEqual(before);
});

it('what an operator does is in the audit log, newest first and in pages', async () => {
  const { found, agent } = await strange();
  agent.automatic = false;
  await test.operator.post(`/v1/operator/quarantine/${found.id}/remove`);
  await test.operator.post(`/v1/operator/machines/${agent.hostId}/cordon`);
  const all = await test.operator.get<{ items: { id: number; action: string }[]; next_cursor?: string }>(
    '/v1/operator/audit-log',
  );
  expect(all.next_cursor).toBe(null);
  expect(all.items.slice(0, 2)).toMatchObject([
    { action: 'machine.cordon', subject: agent.hostId, actor_email: 'operator@example.com' },
    { action: 'quarantine.remove', subject: found.id, details: { instance_id: found.instance_id } },
  ]);
  const paged: number[] = [];
  let cursor: string | null = '';
  for (let page = 0; cursor !== null && page < 100; page++) {
    const query: string = cursor === '' ? 'limit=7' : `limit=7&cursor=${cursor}`;
    const { items, next_cursor }: AuditPage = await test.operator.get<AuditPage>(`/v1/operator/audit-log?${query}`);
    paged.push(...items.map(({ id }) => id));
    cursor = next_cursor;
  }
  expect(paged).toEqual(all.items.map(({ id }) => id));
});
