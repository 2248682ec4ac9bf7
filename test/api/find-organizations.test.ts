import { afterAll, beforeAll, expect, it } from 'vitest';
import { World } from '../contract/world.js';
import type { Renter } from '../harness/control-plane.js';

interface Page {
  items: { id: string; name: string }[];
  next_cursor: string | null;
}

let world: World;
const renters: Renter[] = [];
beforeAll(async () => {
  world = await World.make();
  for (const name of ['acme 2', 'Acme', 'ACME', 'Acne', '100% _ads', 'Äcme']) renters.push(await named(name));
});
afterAll(() => world.stop());

async function named(name: string): Promise<Renter> {
  const renter = await world.test.renter(0);
  await renter.api.request('PATCH', '/v1/orgs/current', { name });
  return renter;
}

const find = (query: Record<string, string>) =>
  world.test.operator.get<Page>(`/v1/operator/organizations?${new URLSearchParams(query).toString()}`);
const namesOf = ({ items }: Page) => items.map(({ name }) => name);

/** Reads all pages of one item each. */
async function oneByOne(query: Record<string, string>): Promise<string[]> {
  const ids: string[] = [];
  let page: Page | undefined;
  do {
    const cursor = page?.next_cursor ? { cursor: page.next_cursor } : {};
    page = await find({ ...query, limit: '1', ...cursor });
    ids.push(...page.items.map(({ id }) => id));
  } while (page.next_cursor !== null);
  return ids;
}

it('finds organizations by the beginning of their name, in upper or lower case, page by page', async () => {
  const found = await find({ name: 'aCM' });
  expect(namesOf(found).map((name) => name.toLowerCase())).toEqual(['acme', 'acme', 'acme 2']);
  expect(await oneByOne({ name: 'aCM' })).toEqual(found.items.map(({ id }) => id));
  expect(namesOf(await find({ name: 'Ä' }))).toEqual(['Äcme']);
  expect(namesOf(await find({ name: 'cme' }))).toEqual([]);
});

it('takes no letter of a name for a wildcard', async () => {
  expect(namesOf(await find({ name: '100%' }))).toEqual(['100% _ads']);
  expect(namesOf(await find({ name: '%' }))).toEqual([]);
  expect(namesOf(await find({ name: '_' }))).toEqual([]);
});

it('finds organizations by the beginning of the address of a member, each once', async () => {
  const { admin, member, test } = world;
  const found = await find({ member_email: member.email.toUpperCase() });
  expect(found.items.map(({ id }) => id)).toEqual(expect.arrayContaining([admin.organizationId]));
  // The admin's address begins so, too.
  const all = await oneByOne({ member_email: 'renter' });
  expect(all).toHaveLength(new Set(all).size);
  const everything = await test.operator.get<Page>('/v1/operator/organizations?limit=500');
  const others = await oneByOne({ member_email: 'operator' });
  expect([...all, ...others].sort()).toEqual(everything.items.map(({ id }) => id).sort());
  expect(await find({ member_email: 'nobody@' })).toEqual({ items: [], next_cursor: null });
});

it('refuses an empty search, two at once, and a cursor of another list', async () => {
  const refused = { code: 'VALIDATION_FAILED' };
  const ask = (query: string) => world.test.operator.request('GET', `/v1/operator/organizations?${query}`);
  expect(await ask('name=')).toMatchObject({ status: 422, body: refused });
  expect(await ask(`name=${'x'.repeat(101)}`)).toMatchObject({ status: 422, body: refused });
  expect(await ask('name=a&member_email=a')).toMatchObject({ status: 422, body: refused });
  const { next_cursor } = await find({ name: 'a', limit: '1' });
  expect(await ask(`member_email=a&cursor=${next_cursor}`)).toMatchObject({ status: 422, body: refused });
});

it('gives the reason of a dispute to both audit logs; without one, nothing has changed', async () => {
  const { admin, test } = world;
  const path = `/v1/operator/organizations/${admin.organizationId}/dispute`;
  const newest = async () => ({
    operators: await test.operator.get('/v1/operator/audit-log?limit=1'),
    members: await admin.api.get('/v1/audit-log?limit=1'),
  });
  await test.operator.post(path, { reason: 'the bank has called' });
  expect(await newest()).toMatchObject({
    operators: { items: [{ action: 'dispute.open', details: { reason: 'the bank has called' } }] },
    members: { items: [{ action: 'dispute.open', reason: 'the bank has called' }] },
  });
  expect(await test.operator.request('DELETE', path, { reason: 'it was a mistake' })).toMatchObject({ status: 200 });
  expect(await newest()).toMatchObject({
    members: { items: [{ action: 'dispute.close', reason: 'it was a mistake' }] },
  });
  await test.operator.post(path);
  expect(await newest()).toMatchObject({
    operators: { items: [{ action: 'dispute.open', details: {} }] },
    members: { items: [{ action: 'dispute.open', reason: null }] },
  });
  expect(await test.operator.delete(path)).toMatchObject({ payments_frozen: false });
});
