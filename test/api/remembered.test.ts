import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { Market } from '../../control-plane/services/catalogue/market.js';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';

let test: TestControlPlane;
let renter: Renter;
let id: string;

beforeAll(async () => {
  test = await TestControlPlane.start();
  const agent = await test.host();
  renter = await test.renter();
  const [offer_id, template_id] = [await test.offer(agent), await test.template()];
  ({ id } = await renter.api.post<InstanceBody>('/v1/instances', { offer_id, template_id, disk_gb: 10 }));
  await statusIs(renter.api, id, 'running');
});
afterAll(() => test.stop());

interface Shown {
  id: string;
  machine: { next_maintenance: string | null };
}

interface Rented {
  gpu_model: string;
  machine: { name: string; region: string };
}

const ask = (path: string, etag: string, api = renter.api) =>
  api.request<InstanceBody>('GET', path, undefined, { 'If-None-Match': etag });
const etagOf = async (path: string) => {
  const { headers } = await renter.api.request('GET', path);
  return headers.get('etag') ?? '';
};

it.each([
  ['an instance', () => `/v1/instances/${id}`],
  ['the instances', () => '/v1/instances'],
  ['a page of them', () => '/v1/instances?limit=200'],
])('%s that has not changed is not sent again, and is when it has', async (_, pathOf) => {
  const path = pathOf();
  const etag = await etagOf(path);
  expect(etag).toMatch(/^"[\w-]{27}"$/);
  for (const known of [etag, `"other", W/${etag}`, '*']) {
    const { status, headers, body } = await ask(path, known);
    expect({ status, etag: headers.get('etag'), body }).toEqual({ status: 304, etag, body: null });
  }
  expect((await ask(path, '"other"')).status).toBe(200);
  await renter.api.post(`/v1/instances/${id}/stop`);
  await statusIs(renter.api, id, 'stopped');
  const changed = await ask(path, etag);
  expect(changed.status).toBe(200);
  expect(JSON.stringify(changed.body)).toContain('"status":"stopped"');
  await renter.api.post(`/v1/instances/${id}/start`);
  await statusIs(renter.api, id, 'running');
});

it('an instance tells what it rents, and where, as its machine has it now', async () => {
  const agent = await test.host({ gpus: 2 });
  const offer_id = await test.offer(agent, 2);
  const body = { offer_id, template_id: await test.template(), disk_gb: 10 };
  const made = await renter.api.post<InstanceBody>('/v1/instances', body);
  const offer = await renter.api.get<Rented>(`/v1/offers/${offer_id}`);
  const machine = { name: offer.machine.name, region: offer.machine.region };
  const rented = { gpu_model: offer.gpu_model, num_gpus: 2, machine };
  expect(made).toMatchObject(rented);
  const shown = async () => [
    await renter.api.get<InstanceBody>(`/v1/instances/${made.id}`),
    (await renter.api.get<{ items: InstanceBody[] }>('/v1/instances')).items.find((one) => one.id === made.id),
    (await renter.api.get<{ items: InstanceBody[] }>('/v1/instances?limit=50')).items.find((one) => one.id === made.id),
  ];
  for (const instance of await shown()) expect(instance).toMatchObject(rented);

  const { gpus, ...inventory } = agent.inventory as { gpus: Record<string, unknown>[] };
  const others = gpus.map((gpu) => ({ ...gpu, model: 'Another model' }));
  await agent.claim({ inventory: { ...inventory, gpus: others } });
  const replaced = { ...rented, gpu_model: 'Another model' };
  for (const instance of await shown()) expect(instance).toMatchObject(replaced);
  await agent.claim({ inventory: { ...inventory, name: 'renamed', region: 'elsewhere', gpus: others } });
  const renamed = { ...replaced, machine: { name: 'renamed', region: 'elsewhere' } };
  for (const instance of await shown()) expect(instance).toMatchObject(renamed);
});

it('a whole list and a page of the same rows are not taken for each other', async () => {
  expect(await renter.api.get('/v1/instances?limit=200')).toHaveProperty('next_cursor', null);
  expect(await renter.api.get('/v1/instances')).not.toHaveProperty('next_cursor');
});

it('an answer without a body counts as a use of its key, and a revoked key gets none', async () => {
  const path = `/v1/instances/${id}`;
  const { key, secret } = await renter.api.post<{ key: { id: string }; secret: string }>('/v1/api-keys', {
    name: 'ci',
    kind: 'personal',
  });
  const byKey = renter.api.as(secret);
  const etag = await etagOf(path);
  expect((await ask(path, etag, byKey)).status).toBe(304);
  test.clock.advance(60_000);
  expect((await ask(path, etag, byKey)).status).toBe(304);
  const { items } = await renter.api.get<{ items: { id: string; last_used_at: string }[] }>('/v1/api-keys');
  const used = items.find((one) => one.id === key.id)?.last_used_at;
  expect(Date.parse(used ?? '')).toBe(test.clock.now());
  await renter.api.delete(`/v1/api-keys/${key.id}`);
  expect((await ask(path, etag, byKey)).status).toBe(401);
});

it('the offers and the catalogue follow each change', async () => {
  const agent = await test.host({ gpus: 2 });
  const prices = async () => {
    const { items } = await renter.api.get<{ items: { id: string; price_per_hour_micro: number }[] }>('/v1/offers');
    return items.filter((offer) => offer.id === offer_id).map(({ price_per_hour_micro }) => price_per_hour_micro);
  };
  let offer_id = '';
  const etag = await etagOf('/v1/offers');
  expect((await ask('/v1/offers', etag)).status).toBe(304);
  offer_id = await test.offer(agent);
  expect((await ask('/v1/offers', etag)).status).toBe(200);
  expect(await prices()).toEqual([1_000_000]);
  await test.operator.request('PATCH', `/v1/operator/offers/${offer_id}`, { price_per_hour_micro: 7 });
  expect(await prices()).toEqual([7]);
  await test.operator.post(`/v1/operator/machines/${agent.hostId}/cordon`);
  expect(await prices()).toEqual([]);
  await test.operator.post(`/v1/operator/machines/${agent.hostId}/uncordon`);
  expect(await prices()).toEqual([7]);
  // A host that says nothing for 30 s is not connected, though nothing has happened.
  test.clock.advance(30_001);
  expect(await prices()).toEqual([]);
  agent.beat();
  await eventually('the offer', async () => (await prices()).length === 1);
  await test.operator.delete(`/v1/operator/offers/${offer_id}`);
  expect(await prices()).toEqual([]);
});

it('a maintenance window is shown until its end', async () => {
  const agent = await test.host();
  const offer_id = await test.offer(agent);
  const at = (ms: number) => new Date(test.clock.now() + ms).toISOString();
  const window = { starts_at: at(5_000), ends_at: at(20_000) };
  await test.operator.request('PUT', `/v1/operator/machines/${agent.hostId}/maintenance`, window);
  const shown = async () => {
    const { items } = await renter.api.get<{ items: Shown[] }>('/v1/offers');
    return items.find((offer) => offer.id === offer_id)?.machine.next_maintenance;
  };
  expect(await shown()).toBe(window.starts_at);
  test.clock.advance(19_999);
  expect(await shown()).toBe(window.starts_at);
  test.clock.advance(1);
  expect(await shown()).toBeNull();
});

it('the answers that are kept of the market are bounded', () => {
  const market = new Market(test.core.platform);
  const cheapest = () => market.offers({ max_price_per_hour_micro: 1 });
  const count = () => market.count({ max_price_per_hour_micro: 1 });
  const [known, counts] = [cheapest(), count()];
  const askFor = (first: number, most: number) => {
    for (let price = first; price <= most; price++) {
      market.offers({ max_price_per_hour_micro: price });
      market.count({ max_price_per_hour_micro: price });
    }
  };
  askFor(2, 100);
  expect([cheapest(), count()].every((kept, index) => kept === [known, counts][index])).toBe(true);
  askFor(101, 200);
  expect([cheapest() === known, count() === counts]).toEqual([false, false]);
});

it('a host that tells something else of itself, under the same name, has no instance read again', async () => {
  const agent = await test.host();
  let told = 0;
  test.core.platform.store.onChange('machine_names', () => (told += 1));
  const inventory = agent.inventory as object;
  await agent.claim({ inventory: { ...inventory, cpuModel: 'another' } });
  expect(told).toBe(0);
  await agent.claim({ inventory: { ...inventory, name: 'another' } });
  expect(told).toBe(1);
});
