import { randomUUID } from 'node:crypto';
import BetterSqlite3 from 'better-sqlite3';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { recordNote } from '../../control-plane/services/events/timeline.js';
import type { ApiClient, InstanceBody } from '../harness/api-client.js';
import { fetchDocument, type ApiDocument } from '../harness/openapi-conformance.js';
import { makePublicKey } from '../harness/keys.js';
import { addApp } from '../harness/second-factors.js';
import { INSTANCE_ORDER, liveIdsOf } from '../../control-plane/services/instances/queries.js';
import { restOf } from '../../control-plane/services/system/pages.js';
import { query } from '../../control-plane/store/sql.js';
import { linkedAccount, setCompany } from '../harness/companies.js';
import { World } from '../contract/world.js';

interface Item {
  id: string;
}
interface Page {
  items: Item[];
  next_cursor?: string | null;
}

let world: World;
let document: ApiDocument;
let instanceId: string;
let endpointId: string;
beforeAll(async () => {
  world = await World.make();
  const { test, admin } = world;
  document = await fetchDocument(test.url);
  const { agent, body } = await world.host({ gpus: 8 });
  // Some of them within one millisecond.
  for (let count = 0; count < 5; count++) {
    instanceId = (await world.running({ ...body, label: `${count}` })).id;
    if (count % 2 === 0) test.clock.advance(1);
    await test.template({ name: 'Twin' });
    await test.offer(agent, 1, 1_000_000 + (count % 2));
    await test.enrollmentToken();
    await admin.api.post('/v1/api-keys', { name: 'k' });
    await admin.api.post('/v1/ssh-keys', { name: 'k', public_key: makePublicKey('-t', 'ed25519') });
    await test.api.post('/v1/auth/sign-in', { email: admin.email, password: 'a renter password' });
    await admin.api.post('/v1/orgs/current/invites', { email: `guest${count}@example.com` });
    await world.join();
    linkedAccount(test, admin);
    await setCompany(test, `https://issuer${count}.example`, { id: `issuer${count}`, domains: [] });
    const hooks = { url: 'https://hooks.example' };
    endpointId = (await admin.api.post<{ endpoint: Item }>('/v1/webhook-endpoints', hooks)).endpoint.id;
    await test.host({ gpus: 1 });
    const credit = { amount_micro: 1_000_000, reason: 'test' };
    await test.operator.post(`/v1/operator/organizations/${admin.organizationId}/credits`, credit);
  }
  for (let count = 0; count < 5; count++) await admin.api.post(`/v1/webhook-endpoints/${endpointId}/test`);
  for (let count = 0; count < 5; count++) {
    await addApp(test, admin.api);
    const { api, userId } = await test.renter(0);
    await addApp(test, api);
    await test.operator.post(`/v1/operator/users/${userId}/second-factor-removal`, { reason: 'lost' });
  }
  // Each ends at once: no host allows upgrades.
  test.core.platform.hostReleaseVersion = '9.9.9';
  for (let count = 0; count < 5; count++) {
    await test.operator.post('/v1/operator/rollouts');
    test.advance(count % 2);
  }
  agent.disconnect();
  for (let count = 0; count < 5; count++) {
    const workload = { sequence: 7, sshPort: 40_123, gpuUuids: [], diskGb: 1, lines: [] };
    agent.workloads.set(randomUUID(), { state: 'WORKLOAD_STATE_RUNNING', ...workload });
  }
  await agent.connect();
  agent.beat();
  test.advance(60_000);
});
afterAll(() => world.stop());

const apiFor = (path: string): ApiClient => (path.startsWith('/v1/operator') ? world.test.operator : world.admin.api);
const at = (path: string, query: object): string => {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) parameters.set(name, String(value));
  return `${path}?${parameters.toString()}`;
};

/** Whatever answers with items; but for payouts, which are with a payment provider. */
function lists(): string[] {
  return Object.entries(document.paths).flatMap(([path, { get }]) => {
    const schema = get?.responses['200']?.content?.['application/json']?.schema;
    const isList = (schema?.['properties'] as { items?: object } | undefined)?.items !== undefined;
    const ids = { organizations: world.admin.organizationId, 'webhook-endpoints': endpointId };
    const id = Object.entries(ids).find(([name]) => path.includes(`/${name}/`))?.[1] ?? instanceId;
    return isList && !path.includes('/payouts/') ? [path.replace('{id}', id)] : [];
  });
}

async function walk(path: string, query: object = {}): Promise<Item[]> {
  const items: Item[] = [];
  for (let next: string | null | undefined = ''; next !== null;) {
    const cursor = next === '' ? {} : { cursor: next };
    const page: Page = await apiFor(path).get<Page>(at(path, { ...query, limit: 2, ...cursor }));
    expect(page.items.length).toBeLessThanOrEqual(2);
    expect(page.next_cursor, path).not.toBe(undefined);
    items.push(...page.items);
    next = page.next_cursor;
  }
  return items;
}

/** Lists of operators come in pages in any case, but for those that are short; so do events, the audit log and meter intervals. */
const isAlwaysPaged = (path: string) =>
  path === '/v1/events' ||
  path === '/v1/audit-log' ||
  path.endsWith('/meter-intervals') ||
  (path.startsWith('/v1/operator') && !/ignored-stops|workers|settings/.test(path));

it('every list comes in pages, where a page is asked for; a renter gets a whole one, where none is', async () => {
  expect(lists()).toHaveLength(44);
  for (const path of lists()) {
    const { items, next_cursor } = await apiFor(path).get<Page>(path);
    expect(next_cursor, path).toBe(isAlwaysPaged(path) ? null : undefined);
    const isShort =
      /ignored-stops|settings|intervals|status|events|payments|revenue|summary|me.invites|organizations.*(machines|templates)/.test(
        path,
      );
    expect(items.length, path).toBeGreaterThan(isShort ? -1 : 3);
    expect(await walk(path), path).toEqual(items);
  }
});

it.each([
  ['/v1/instances', { include_destroyed: true }],
  ['/v1/offers', { sort: 'price_desc' }],
  ['/v1/offers', { sort: 'newest', num_gpus: 1 }],
  ['/v1/offers', { sort: 'memory_desc' }],
  ['/v1/templates', { tab: 'system' }],
  ['/v1/billing/spend-daily', { days: 7 }],
])('%s comes in pages as it is asked for: %j', async (path, query) => {
  const { items } = await apiFor(path).get<Page>(at(path, query));
  expect(items.length).toBeGreaterThan(2);
  expect(await walk(path, query)).toEqual(items);
});

it('what is no cursor of the list is refused', async () => {
  const foreign = Buffer.from('["a","b","c","d"]').toString('base64url');
  const strange = ['x', 'é', '', Buffer.from('[[1],{}]').toString('base64url'), foreign, 'A'.repeat(1_025)];
  for (const path of [...lists(), '/v1/billing/transactions.csv', '/v1/billing/summary.csv']) {
    for (const cursor of strange) {
      const answer = await apiFor(path).request('GET', at(path, { cursor }));
      expect(answer, path).toMatchObject({ status: 422, body: { details: [{ path: 'cursor' }] } });
    }
    for (const limit of ['0', '501', 'x']) {
      expect(await apiFor(path).request('GET', at(path, { limit })), path).toMatchObject({ status: 422 });
    }
  }
});

it('what comes and goes meanwhile moves nothing else from one page to another', async () => {
  const renter = await world.test.renter(0);
  const add = async (name: string) => (await renter.api.post<Item>('/v1/templates', { name, image: 'i:1' })).id;
  const mint = async () => (await renter.api.post<{ key: Item }>('/v1/api-keys', { name: 'k' })).key.id;
  for (const [path, make] of [
    ['/v1/templates', (index: number) => add(`own ${index}`)],
    ['/v1/api-keys', mint],
  ] as const) {
    const query = path === '/v1/templates' ? { tab: 'organization' } : {};
    for (let index = 0; index < 6; index++) await make(index);
    const { items: before } = await renter.api.get<Page>(at(path, query));
    const first = await renter.api.get<Page>(at(path, { ...query, limit: 2 }));
    await renter.api.delete(`${path}/${first.items[1]?.id}`);
    await make(-1);
    const second = await renter.api.get<Page>(at(path, { ...query, limit: 2, cursor: first.next_cursor }));
    expect(
      second.items.map(({ id }) => id),
      path,
    ).toEqual(before.slice(2, 4).map(({ id }) => id));
  }
});

it('a CSV file has as many rows as were asked for, from where they were asked for', async () => {
  const rows = async (query: object) => {
    const text = await world.admin.api.get<string>(at('/v1/billing/transactions.csv', query));
    return text.trim().split('\n').slice(1);
  };
  const all = await rows({});
  expect(all.length).toBeGreaterThan(4);
  expect(await rows({ limit: 2 })).toEqual(all.slice(0, 2));
  const { next_cursor } = await world.admin.api.get<Page>('/v1/billing/transactions?limit=3');
  expect(await rows({ limit: 1, cursor: next_cursor })).toEqual(all.slice(3, 4));
});

it('events go back further by pages than without', async () => {
  const { store } = world.test.core.platform;
  const { id } = await world.admin.api.get<InstanceBody>(`/v1/instances/${instanceId}`);
  store.transact((tx) => {
    for (let count = 0; count < 600; count++) recordNote(tx, id, 'note', `${count}`);
  });
  const path = `/v1/instances/${id}/events`;
  expect((await world.admin.api.get<Page>(path)).items).toHaveLength(500);
  const { items, next_cursor } = await world.admin.api.get<Page>(`${path}?limit=500`);
  expect(items).toHaveLength(500);
  const rest = await world.admin.api.get<Page>(`${path}?limit=500&cursor=${next_cursor}`);
  expect(rest.items.length).toBeGreaterThan(100);
  expect(rest.next_cursor).toBeNull();
});

it('a CSV file that cannot be read to its end is cut off, and nothing else is', async () => {
  const { test, admin } = world;
  const { store } = test.core.platform;
  const row = { organization_id: admin.organizationId, kind: 'credit', amount_micro: 1, created_at: 1 } as const;
  const none = { instance_id: null, meter: null, hour: null, reason: 'x'.repeat(200), author_id: null };
  store.transact((tx) => {
    for (let index = 0; index < 3_000; index++)
      tx.run(query.insertInto('transactions').values({ id: randomUUID(), ...row, ...none }));
  });
  const transact = store.transact.bind(store);
  let calls = 0;
  store.transact = (work) => {
    calls += 1;
    if (calls > 3) throw new Error('disk I/O error');
    return transact(work);
  };
  await expect(admin.api.get('/v1/billing/transactions.csv')).rejects.toThrow();
  store.transact = transact;
  expect((await admin.api.get<Page>('/v1/billing/transactions?limit=1')).items).toHaveLength(1);
});

it('the instances of an organization are read without those that are destroyed, so that it takes no longer as these grow', () => {
  const { sql, parameters } = restOf(liveIdsOf('o'), {}, INSTANCE_ORDER.by).compile();
  const database = new BetterSqlite3(world.test.databaseFile, { readonly: true });
  const plan = database.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters);
  database.close();
  expect(plan.map(({ detail }) => detail)).toEqual([
    'SEARCH instances USING INDEX instances_live_by_organization (organization_id=?)',
  ]);
});
