import semver from 'semver';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOUR_MS } from '../../shared/time.js';
import type { InstanceBody } from '../harness/api-client.js';
import { VERSION } from '../../shared/version.js';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';

let test: TestControlPlane;
let renter: Renter;
let templateId: string;

beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
  templateId = await test.template();
});
afterAll(() => test.stop());

async function offered() {
  const agent = await test.host({ gpus: 3 });
  const machine = `/v1/operator/machines/${agent.hostId}`;
  const body = { offer_id: await test.offer(agent), template_id: templateId, disk_gb: 10 };
  return { agent, machine, body };
}

const at = (ms: number) => new Date(test.clock.now() + ms).toISOString();

it('a cordoned machine takes nothing new, and what runs on it goes on', async () => {
  const { machine, body } = await offered();
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  expect(await test.operator.post(`${machine}/cordon`)).toMatchObject({ cordoned: true });
  const refused = await renter.api.request('POST', '/v1/instances', body);
  expect(refused).toMatchObject({ status: 409, body: { code: 'OFFER_UNAVAILABLE' } });
  await statusIs(renter.api, id, 'running');
  expect(await test.operator.post(`${machine}/uncordon`)).toMatchObject({ cordoned: false });
  expect((await renter.api.request('POST', '/v1/instances', body)).status).toBe(201);
});

describe('a machine’s disk', () => {
  it('is rented only where each renter is held to a size, or an operator says so', async () => {
    const agent = await test.host({ diskQuota: 'none' });
    const offer_id = await test.offer(agent);
    const body = { offer_id, template_id: await test.template(), disk_gb: 10 };
    const waiver = `/v1/operator/machines/${agent.hostId}/disk-quota-waiver`;
    const refused = await renter.api.request('POST', '/v1/instances', body);
    expect(refused).toMatchObject({ status: 409, body: { code: 'OFFER_UNAVAILABLE' } });
    const waived = await test.operator.request('PUT', waiver);
    expect(waived).toMatchObject({ status: 200, body: { disk_quota: 'none', disk_quota_waived: true } });
    expect((await renter.api.request('POST', '/v1/instances', body)).status).toBe(201);
    expect(await test.operator.delete(waiver)).toMatchObject({ disk_quota_waived: false });
    expect((await renter.api.request('POST', '/v1/instances', body)).status).toBe(409);
  });

  it('is no larger than what the host really has left', async () => {
    const agent = await test.host();
    const offer_id = await test.offer(agent);
    agent.beat({ diskFreeGb: 30 });
    await eventually('what is left', async () => {
      const { machine } = await renter.api.get<{ machine: { disk_available_gb: number } }>(`/v1/offers/${offer_id}`);
      return machine.disk_available_gb === 30;
    });
    const body = { offer_id, template_id: await test.template(), disk_gb: 31 };
    expect(await renter.api.request('POST', '/v1/instances', body)).toMatchObject({
      status: 409,
      body: { code: 'MACHINE_DISK_EXHAUSTED', available_disk_gb: 30, requested_disk_gb: 31 },
    });
    expect((await renter.api.request('POST', '/v1/instances', { ...body, disk_gb: 30 })).status).toBe(201);
  });
});

describe('maintenance', () => {
  it('stops deploys and starts from an hour before it, and says when', async () => {
    const { machine, body } = await offered();
    const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
    await statusIs(renter.api, id, 'running');
    await renter.api.post(`/v1/instances/${id}/stop`);
    await statusIs(renter.api, id, 'stopped');
    const window = { starts_at: at(2 * HOUR_MS), ends_at: at(3 * HOUR_MS) };
    const planned = await test.operator.request('PUT', `${machine}/maintenance`, window);
    expect(planned).toMatchObject({ status: 200, body: { maintenance: window } });
    const far = await renter.api.request<InstanceBody>('POST', '/v1/instances', body);
    expect(far.status).toBe(201);
    await statusIs(renter.api, far.body.id, 'running');

    const near = { starts_at: at(HOUR_MS), ends_at: at(3 * HOUR_MS) };
    await test.operator.request('PUT', `${machine}/maintenance`, near);
    const before = test.dump();
    expect(await renter.api.request('POST', '/v1/instances', body)).toMatchObject({
      status: 409,
      body: { code: 'MACHINE_IN_MAINTENANCE', next_maintenance: near.starts_at },
    });
    const start = await renter.api.request<{ message: string }>('POST', `/v1/instances/${id}/start`);
    expect(start).toMatchObject({ status: 409, body: { code: 'START_REFUSED' } });
    expect(start.body.message).toContain(near.starts_at);
    expect(test.dump()).toEqual(before);
    expect(await test.operator.delete(`${machine}/maintenance`)).toMatchObject({ maintenance: null });
    expect((await renter.api.request('POST', `/v1/instances/${id}/start`)).status).toBe(202);
  });

  it.each([
    [() => ({ starts_at: at(2), ends_at: at(1) }), 'ends_at'],
    [() => ({ starts_at: at(-2), ends_at: at(-1) }), 'ends_at'],
    [() => ({ starts_at: 'soon', ends_at: at(1) }), 'starts_at'],
  ])('refuses a window that makes no sense', async (window, path) => {
    const { machine } = await offered();
    const answer = await test.operator.request('PUT', `${machine}/maintenance`, window());
    expect(answer).toMatchObject({ status: 422, body: { code: 'VALIDATION_FAILED', details: [{ path }] } });
  });
});

it('a new price is for who rents from then on, and operators see who pays which', async () => {
  const { agent, body } = await offered();
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  const reprice = (fields: unknown) => test.operator.request('PATCH', `/v1/operator/offers/${body.offer_id}`, fields);
  expect((await reprice({ price_per_hour_micro: 7 })).body).toMatchObject({
    price_per_hour_micro: 7,
    storage_price_per_gb_hour_micro: 100,
  });
  const later = await renter.api.post<InstanceBody>('/v1/instances', body);
  expect((await renter.api.get<InstanceBody>(`/v1/instances/${id}`))['price_per_hour_micro']).toBe(1_000_000);
  expect(later['price_per_hour_micro']).toBe(7);
  const listed = async (of: string) =>
    (await test.operator.get<{ items: { id: string; rentals: object[] }[] }>(`/v1/operator/offers?${of}`)).items;
  const [offer] = await listed(`machine_id=${agent.hostId}&withdrawn=false&gpu_model=Fake%20GPU`);
  expect(offer).toMatchObject({
    id: body.offer_id,
    rentals: [
      { price_per_hour_micro: 7, instances: 1 },
      { price_per_hour_micro: 1_000_000, instances: 1 },
    ],
  });
  expect(await listed(`machine_id=${agent.hostId}&gpu_model=other`)).toEqual([]);
  expect(await listed(`machine_id=${agent.hostId}&withdrawn=true`)).toEqual([]);
  await test.operator.delete(`/v1/operator/offers/${body.offer_id}`);
  expect((await reprice({ price_per_hour_micro: 8 })).status).toBe(404);
});

it('an offer is found by the model of the GPUs that its machine has now', async () => {
  const { agent, body } = await offered();
  const offersOf = async (gpu_model: string) =>
    (
      await test.operator.get<{ items: { id: string }[] }>(
        `/v1/operator/offers?${new URLSearchParams({ gpu_model }).toString()}`,
      )
    ).items;
  expect(await offersOf('Other GPU')).toEqual([]);
  agent.disconnect();
  for (const gpu of agent.inventory['gpus'] as { model: string }[]) gpu.model = 'Other GPU';
  await agent.connect();
  await eventually('the other model', async () => (await offersOf('Other GPU')).some(({ id }) => id === body.offer_id));
  expect((await offersOf('Fake GPU')).map(({ id }) => id)).not.toContain(body.offer_id);
});

it('a dispute freezes payments: nothing is deployed or started until it is closed', async () => {
  const { body } = await offered();
  const frozen = await test.renter();
  const { id } = await frozen.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(frozen.api, id, 'running');
  const dispute = `/v1/operator/organizations/${frozen.organizationId}/dispute`;
  expect(await test.operator.post(dispute)).toMatchObject({ payments_frozen: true });
  expect(await frozen.api.get(`/v1/instances/${id}`)).toMatchObject({ status: 'running', stop_releases_gpus: true });
  const deploy = await frozen.api.request('POST', '/v1/instances', body);
  expect(deploy).toMatchObject({ status: 402, body: { code: 'PAYMENTS_FROZEN' } });

  // A stop now gives the GPUs back; the start after the dispute takes the same ones again.
  await frozen.api.post(`/v1/instances/${id}/stop`);
  expect(await statusIs(frozen.api, id, 'stopped')).toMatchObject({ gpus_released: true, gpu_release: 'released' });
  const start = await frozen.api.request('POST', `/v1/instances/${id}/start`);
  expect(start).toMatchObject({ status: 402, body: { code: 'PAYMENTS_FROZEN' } });
  expect(await test.operator.delete(dispute)).toMatchObject({ payments_frozen: false });
  expect((await frozen.api.request('POST', `/v1/instances/${id}/start`)).status).toBe(202);
  expect(await statusIs(frozen.api, id, 'running')).toMatchObject({
    gpus_released: false,
    gpu_release: null,
    gpu_release_requested_at: null,
  });
});

it('released GPUs can be rented by others, and then a start says so', async () => {
  const agent = await test.host({ gpus: 1 });
  const body = { offer_id: await test.offer(agent), template_id: templateId, disk_gb: 10 };
  const frozen = await test.renter();
  const { id } = await frozen.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(frozen.api, id, 'running');
  const dispute = `/v1/operator/organizations/${frozen.organizationId}/dispute`;
  await test.operator.post(dispute);
  await frozen.api.post(`/v1/instances/${id}/stop`);
  await statusIs(frozen.api, id, 'stopped');
  await test.operator.delete(dispute);
  const taken = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, taken.id, 'running');
  const start = await frozen.api.request('POST', `/v1/instances/${id}/start`);
  expect(start).toMatchObject({ status: 409, body: { code: 'CAPACITY_UNAVAILABLE' } });
  expect((await frozen.api.get<InstanceBody>(`/v1/instances/${id}`)).status).toBe('stopped');
});

it('tells which agents are older than the control plane', async () => {
  const early = `${semver.coerce(VERSION)?.version}-alpha.10`;
  const built = `${VERSION}+0badc0de`;
  const claims = { old: '0.0.9', early, new: '99.0.0', same: VERSION, built, odd: 'of today' };
  for (const [name, agentVersion] of Object.entries(claims)) await (await test.host({ name })).claim({ agentVersion });
  const named = async (outdated: boolean) =>
    (
      await test.operator.get<{ items: { name: string; upgrade_to: string | null }[] }>(
        `/v1/operator/machines?outdated=${outdated}`,
      )
    ).items
      .filter(({ name }) => name in claims)
      .map(({ name, upgrade_to }): [string, string | null] => [name, upgrade_to]);
  expect(new Map(await named(true))).toEqual(new Map(['old', 'early'].map((name) => [name, VERSION])));
  expect(new Map(await named(false))).toEqual(new Map(['new', 'same', 'built', 'odd'].map((name) => [name, null])));
});
