import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';

let test: TestControlPlane;
let renter: Renter;

beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
});
afterAll(() => test.stop());

it.each([
  [200, '/v1/api-keys', () => ({ name: 'k' })],
  [19, '/v1/orgs', () => ({ name: 'another' })],
  [100, '/v1/orgs/current/invites', (index: number) => ({ email: `guest${index}@example.com` })],
  [20, '/v1/templates', () => ({ name: 'open', image: 'i', visibility: 'public' })],
  [180, '/v1/templates', () => ({ name: 'own', image: 'i' })],
])('%i more are let in at %s, and no further one', async (count, path, body) => {
  for (let index = 0; index < count; index++) {
    expect((await renter.api.request('POST', path, body(index))).status).toBe(201);
  }
  const before = test.dump();
  const refused = await renter.api.request('POST', path, body(count));
  expect(refused).toMatchObject({ status: 409, body: { code: 'LIMIT_REACHED', limit: expect.any(Number) as number } });
  expect(test.dump()).toEqual(before);
});

it('the list of templates leaves out what can be long', async () => {
  const other = await test.renter();
  const { id } = await other.api.post<{ id: string }>('/v1/templates', {
    name: 'a',
    image: 'i',
    readme: 'r',
    onstart: 'o',
  });
  const { items } = await other.api.get<{ items: { id: string }[] }>('/v1/templates?tab=organization');
  expect(items).toMatchObject([{ id, readme: null, onstart: null }]);
  expect(await other.api.get(`/v1/templates/${id}`)).toMatchObject({ readme: 'r', onstart: 'o' });
});

it('nobody slips another template under a hash that is in use', async () => {
  const system = await test.template({ name: 'system', image: 'well-known:1' });
  const { hash_id } = await renter.api.get<{ hash_id: string }>(`/v1/templates/${system}`);
  const [attacker, victim] = [await test.renter(), await test.renter()];
  test.clock.advance(1_000);
  const copy = await attacker.api.post<{ id: string }>(`/v1/templates/${system}/duplicate`);
  await attacker.api.request('PATCH', `/v1/templates/${copy.id}`, { visibility: 'public' });
  expect(await victim.api.get(`/v1/templates/by-hash/${hash_id}`)).toMatchObject({ id: system });
});
