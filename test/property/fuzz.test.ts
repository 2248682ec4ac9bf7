import fc from 'fast-check';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { fetchDocument } from '../harness/openapi-conformance.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import { SEED } from '../harness/test-seed.js';
import { poolOf, requestsOf, withKnownIds, type FuzzRequest, type Pool } from './requests.js';

const REQUESTS = Number(process.env['TEST_FUZZ_REQUESTS'] ?? 600);
const MAX_IDS = 20;
/** What one credit may be. */
const MOST_MICRO = 1_000_000_000_000;

let test: TestControlPlane;
let people: Renter[];
let keys: string[];
let ids: Map<string, string[]>;

beforeAll(async () => {
  test = await TestControlPlane.start();
  people = [await test.renter(), await test.renter()];
  keys = [];
  ids = new Map();
  await refresh();
});
afterAll(() => test.stop());

/** What requests can be about: machines with offers, instances, keys that are alive; and sessions of everybody. */
async function refresh(): Promise<void> {
  await test.signInOperator();
  const agent = await test.host({ gpus: 4 });
  const body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
  agent.automatic = false;
  keys = [];
  people = await Promise.all(people.map(signedIn));
  for (const { api } of people) {
    const { id } = await api.post<InstanceBody>('/v1/instances', body);
    const { secret } = await api.post<{ secret: string }>('/v1/api-keys', { name: 'fuzz' });
    keys.push(secret);
    remember('instances', id);
  }
  learn({ ...body, machine_id: agent.hostId }, undefined);
}

/** Somebody who can still sign in and rent; else somebody new. */
async function signedIn(renter: Renter): Promise<Renter> {
  const { status, body } = await test.api.request<{ token: string; organization: { id: string } | null }>(
    'POST',
    '/v1/auth/sign-in',
    { email: renter.email, password: 'a renter password' },
  );
  if (status !== 200 || !body.organization) return test.renter();
  const organization = `/v1/operator/organizations/${body.organization.id}`;
  await test.operator.request('DELETE', `${organization}/dispute`);
  await test.operator.request('POST', `${organization}/restore`, { reason: 'test' });
  const fresh = { ...renter, api: test.api.as(body.token), organizationId: body.organization.id };
  const noCaps = { burn_per_hour_micro: null, day_micro: null, month_micro: null };
  const uncapped = await fresh.api.request('PUT', '/v1/orgs/current/spend-caps', noCaps);
  // Somebody who is no admin any more cannot lift them.
  if (uncapped.status !== 200) return test.renter();
  const { balance_micro } = await fresh.api.get<{ balance_micro: number }>('/v1/orgs/current');
  if (balance_micro < -MOST_MICRO / 2) return test.renter();
  const credit = { amount_micro: 100_000_000 - Math.min(balance_micro, 0), reason: 'test' };
  await test.operator.post(`${organization}/credits`, credit);
  const live = await fresh.api.get<{ items: InstanceBody[] }>('/v1/instances');
  return live.items.length > 20 ? test.renter() : fresh;
}

/** Operators' routes are mostly tried by an operator, the others mostly by renters. */
function tokenFor({ path, credential }: FuzzRequest): string | undefined {
  const renters = [...people.map(({ api }) => api.token), ...people.map(({ api }) => api.token), ...keys];
  const likely = path.startsWith('/v1/operator') ? [test.operator.token] : renters;
  const everybody = [undefined, test.operator.token, ...renters];
  const from = credential % 8 === 0 ? everybody : likely;
  return from[credential % from.length];
}

async function send(request: FuzzRequest) {
  const path = withKnownIds(request.path, ids) + (request.query ? `?${withKnownIds(request.query, ids)}` : '');
  const body = request.method === 'GET' ? undefined : request.body && withKnownIds(request.body, ids);
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, withKnownIds(value, ids)]),
  );
  return test.api.as(tokenFor(request)).request<unknown>(request.method, path, body, headers);
}

/** Later requests are about what earlier answers have named. `pool` is what a plain `id` stands for. */
function learn(value: unknown, pool: Pool | undefined): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, part] of Object.entries(value)) {
    const named = name === 'id' ? pool : poolOf(name);
    if (typeof part === 'string' && named) remember(named, part);
    else learn(part, Array.isArray(value) || name === 'items' ? pool : (poolOf(name) ?? pool));
  }
}

function remember(pool: Pool, id: string): void {
  ids.set(pool, [...(ids.get(pool) ?? []), id].slice(-MAX_IDS));
}

function poolIn(operation: string): Pool | undefined {
  return operation
    .split('/')
    .map(poolOf)
    .find((pool) => pool !== undefined);
}

it(`survives ${REQUESTS} requests drawn from its own document (seed ${SEED})`, { timeout: 600_000 }, async () => {
  const requests = fc.sample(requestsOf(await fetchDocument(test.api.baseUrl)), { numRuns: REQUESTS, seed: SEED });
  const answered = new Map<number, number>();
  const succeeded = new Set<string>();
  for (const [index, request] of requests.entries()) {
    if (index % 100 === 99) await refresh();
    await setImmediate();
    const before = test.dump();
    // Whatever the answer is, the client holds it against the document.
    const { status, body } = await send(request);
    const what = `request ${index} of seed ${SEED}: ${JSON.stringify(request)} answered ${status} ${JSON.stringify(body)}`;
    expect(status, what).toBeLessThan(500);
    if (status >= 400) expect(test.dump(), what).toEqual(before);
    else succeeded.add(request.operation);
    answered.set(status, (answered.get(status) ?? 0) + 1);
    learn(body, poolIn(request.operation));
  }
  console.log(
    `fuzzing: seed ${SEED}, answers by status ${JSON.stringify(Object.fromEntries([...answered].sort()))}, ` +
      `${succeeded.size} operations succeeded at least once`,
  );
  expect(succeeded.size).toBeGreaterThan(20);
});
