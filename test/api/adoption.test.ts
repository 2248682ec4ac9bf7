import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  MAX_ORIGIN_CHARS,
  openOrigin,
  sealOrigin,
  type Origin,
} from '../../control-plane/services/instances/origin.js';
import { rowById } from '../../control-plane/store/sql.js';
import type { InstanceBody } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import type { FakeAgent } from '../harness/fake-agent.js';
import { makePublicKey } from '../harness/keys.js';

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAdoptedAdoptedAdoptedAdoptedAdoptedAdo';
/** Cheaper than the offer is now, and on less than the host says that it holds. */
const TERMS = {
  disk_gb: 30,
  price_per_hour_micro: 900_000,
  storage_price_per_gb_hour_micro: 50,
  release_stopped_after_ms: null,
};
const UNKNOWN = { organization_id: null, template_id: null, offer_id: null, label: null, ssh_public_key: null };

let test: TestControlPlane;
let renter: Renter;
let templateId: string;

beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
  templateId = await test.template({ name: 'Guarded', ports: [{ port: 8000, open_button: true, label: 'App' }] });
});
afterAll(() => test.stop());

const encryption = () => test.core.platform.encryption;

/** A host with a workload that the store has never heard of, which says of its origin what `seal` makes of the truth. */
async function unheardOf(seal: (origin: Origin) => string, state: 'RUNNING' | 'STOPPED' = 'RUNNING') {
  const agent = await test.host({ gpus: 1 });
  const offerId = await test.offer(agent);
  const { gpus } = await test.operator.get<{ gpus: { uuid: string }[] }>(`/v1/operator/machines/${agent.hostId}`);
  const instanceId = randomUUID();
  const origin: Origin = {
    instance_id: instanceId,
    organization_id: renter.organizationId,
    template_id: templateId,
    offer_id: offerId,
    label: 'mine',
    ssh_public_key: KEY,
    ...TERMS,
  };
  agent.disconnect();
  agent.workloads.set(instanceId, {
    state: `WORKLOAD_STATE_${state}`,
    sequence: 7,
    sshPort: 40_123,
    gpuUuids: gpus.map(({ uuid }) => uuid),
    diskGb: 40,
    origin: seal(origin),
    lines: [],
  });
  agent.automatic = false;
  await agent.connect();
  const { items } = await test.operator.get<{ items: Record<string, unknown>[] }>('/v1/operator/quarantine');
  const found = items.find(({ machine_id }) => machine_id === agent.hostId);
  return { agent, instanceId, origin, found, path: `/v1/operator/quarantine/${String(found?.['id'])}/adopt` };
}

const keyOf = (id: string) => test.core.platform.store.transact((tx) => tx.get(rowById('instances', id)))?.api_key_id;

async function scrape(): Promise<string> {
  return (await fetch(`${test.url}/metrics`)).text();
}

it('a deploy tells the host whose the workload is, in words that only the control plane can read', async () => {
  const agent = await test.host({ gpus: 1, automatic: false });
  const public_key = makePublicKey('-t', 'ed25519');
  const { id: ssh_key_id } = await renter.api.post<{ id: string }>('/v1/ssh-keys', { name: 'key', public_key });
  const body = {
    offer_id: await test.offer(agent),
    template_id: templateId,
    disk_gb: 10,
    ssh_key_id,
    label: 'named',
    max_charge_micro: 50_000_000,
  };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  const command = await eventually('the command', () => agent.held[0]);
  const sealed = command.running?.spec.origin ?? '';
  expect(sealed).not.toContain(Buffer.from('named').toString('base64').slice(0, 6));
  expect(openOrigin(encryption(), sealed, id)).toEqual({
    instance_id: id,
    organization_id: renter.organizationId,
    template_id: templateId,
    offer_id: body.offer_id,
    label: 'named',
    ssh_public_key: public_key.split(' ').slice(0, 2).join(' '),
    disk_gb: 10,
    price_per_hour_micro: 1_000_000,
    storage_price_per_gb_hour_micro: 100,
    release_stopped_after_ms: null,
    stop_at: null,
    max_charge_micro: 50_000_000,
    idle_stop_minutes: null,
    api_key_id: null,
  });
  agent.done(command);
  await statusIs(renter.api, id, 'running');
  await renter.api.delete(`/v1/instances/${id}`);
});

it('quarantine names whose it was, and an adoption without a word gives it back, reachable at once', async () => {
  const { agent, instanceId, origin, found, path } = await unheardOf((truth) => sealOrigin(encryption(), truth));
  const { organization_id, template_id, offer_id, label, ssh_public_key } = origin;
  const named = { organization_id, template_id, offer_id, label, ssh_public_key };
  expect(found).toMatchObject({ ...named, organization_name: expect.any(String) as string, template_name: 'Guarded' });
  const metrics = await scrape();
  expect(metrics).toContain('gpurent_workloads_quarantined 1');
  expect(metrics).toContain('gpurent_gpus{state="quarantined"} 1');

  const adopted = await test.operator.post<InstanceBody & { access_token: string }>(path, {});
  expect(adopted).toMatchObject({
    id: instanceId,
    status: 'running',
    label: 'mine',
    ssh_port: 40_123,
    deployed_by: 'operator',
  });
  // Neither its host nor a later price makes it dearer.
  const { disk_gb, price_per_hour_micro, storage_price_per_gb_hour_micro } = TERMS;
  expect(adopted).toMatchObject({ disk_gb, price_per_hour_micro, storage_price_per_gb_hour_micro });
  const shown = await renter.api.get<Record<string, unknown>>(`/v1/instances/${instanceId}`);
  expect(shown['ssh_host']).not.toBeNull();
  expect(shown['ssh_ready_at']).not.toBeNull();
  // Of the token before nobody knows: the host is told of the one that is shown.
  const command = await eventually('the new access', () => agent.held[0]);
  const tokenHash = createHash('sha256').update(adopted.access_token).digest('hex');
  expect(command).toMatchObject({ desired: 'kept', access: { tokenHash, sshAuthorizedKey: KEY } });
  expect(await scrape()).toContain('gpurent_workloads_quarantined 0');
});

it('an adoption keeps the limits of the deploy and its API key, and no limit destroys', async () => {
  const { key } = await renter.api.post<{ key: { id: string } }>('/v1/api-keys', { name: 'ci' });
  const stop_at = test.clock.now() + 3_600_000;
  const limits = { stop_at, max_charge_micro: 7_000_000, idle_stop_minutes: 60 };
  const { instanceId, path } = await unheardOf((truth) =>
    sealOrigin(encryption(), { ...truth, ...limits, api_key_id: key.id }),
  );
  const shown = { ...limits, stop_at: new Date(stop_at).toISOString(), on_limit: null };
  expect(await test.operator.post(path, { label: null })).toMatchObject({ ...shown, label: null });
  expect(keyOf(instanceId)).toBe(key.id);
});

it.each([
  ['an API key that is lost', () => ({ api_key_id: randomUUID() }), {}],
  ['limits and a key of another organization', () => ({ stop_at: test.clock.now() + 3_600_000 }), { other: true }],
])('an adoption leaves out %s', async (_, more, { other = false }: { other?: boolean }) => {
  const { instanceId, path } = await unheardOf((truth) => sealOrigin(encryption(), { ...truth, ...more() }));
  const organization = other ? { organization_id: (await test.renter()).organizationId } : {};
  const template_id = await test.template({ name: 'Of all' });
  expect(await test.operator.post(path, { ...organization, template_id })).toMatchObject({
    stop_at: null,
    ...(other ? { label: null, ssh_key_fingerprint: null } : { label: 'mine' }),
  });
  expect(keyOf(instanceId)).toBeNull();
});

it('an adoption keeps the kind: a container is no virtual machine', async () => {
  const { found, path } = await unheardOf((truth) => sealOrigin(encryption(), truth));
  const template_id = await test.template({ name: 'Machine', kind: 'vm' });
  const refused = await test.operator.request<{ message: string }>('POST', path, { template_id });
  expect(refused).toMatchObject({ status: 422, body: { code: 'VALIDATION_FAILED' } });
  expect(refused.body.message).toContain('the workload is a container; choose a template of that kind');
  const { items } = await test.operator.get<{ items: { id: unknown }[] }>('/v1/operator/quarantine');
  expect(items.map(({ id }) => id)).toContain(found?.['id']);
});

it('a stopped one takes its access with the next start', async () => {
  const { agent, instanceId, path } = await unheardOf((truth) => sealOrigin(encryption(), truth), 'STOPPED');
  const adopted = await test.operator.post<InstanceBody & { access_token: string }>(path, { label: 'other' });
  expect(adopted).toMatchObject({ status: 'stopped', label: 'other', ssh_port: null });
  expect(agent.held).toEqual([]);
  const start = renter.api.post(`/v1/instances/${instanceId}/start`);
  const command = await eventually('the start', () => agent.held[0]);
  const tokenHash = createHash('sha256').update(adopted.access_token).digest('hex');
  expect(command).toMatchObject({ desired: 'running', access: { tokenHash, sshAuthorizedKey: KEY } });
  agent.done(command);
  await start;
});

it.each<[string, (origin: Origin) => string]>([
  ['what an older release has made', () => ''],
  ['what no control plane has sealed', (origin) => Buffer.from(JSON.stringify(origin)).toString('base64')],
  [
    'what was sealed for another workload',
    (origin) => sealOrigin(encryption(), { ...origin, instance_id: randomUUID() }),
  ],
  [
    'what is longer than any control plane says',
    (origin) => sealOrigin(encryption(), { ...origin, label: 'x'.repeat(MAX_ORIGIN_CHARS) }),
  ],
])('%s names nobody, and the adoption says what is missing', async (_, seal) => {
  const { found, path, agent, origin } = await unheardOf(seal);
  expect(found).toMatchObject(UNKNOWN);
  const before = test.dump();
  expect(await test.operator.request('POST', path, { template_id: templateId })).toMatchObject({
    status: 422,
    body: { code: 'VALIDATION_FAILED', message: expect.stringContaining('organization_id') as string },
  });
  expect(test.dump()).toEqual(before);
  const { organization_id, template_id, offer_id } = origin;
  await test.operator.post(path, { organization_id, template_id, offer_id, disk_gb: 40 });
  // Its SSH key is not known: it stays, and so does the rest of the access.
  await quiet(agent);
  expect(agent.held).toEqual([]);
});

/** Resolves when everything that the host was to be told has been sent. */
async function quiet(agent: FakeAgent): Promise<void> {
  await agent.speak([...agent.workloads.keys()][0] ?? '');
}
