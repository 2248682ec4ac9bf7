import BetterSqlite3 from 'better-sqlite3';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { HOUR_MS } from '../../shared/time.js';
import type { InstanceBody } from '../harness/api-client.js';
import { fetchDocument } from '../harness/openapi-conformance.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';

const NOWHERE = '00000000-0000-4000-8000-000000000000';

let test: TestControlPlane;
let renter: Renter;
let id: string;
beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
  const offer_id = await test.offer(await test.host());
  const body = { offer_id, template_id: await test.template(), disk_gb: 10 };
  id = (await renter.api.post<InstanceBody>('/v1/instances', body)).id;
  await statusIs(renter.api, id, 'running');
});
afterAll(() => test.stop());

const template = { name: 'T', image: 't:1', readme: 'x'.repeat(60_000) };

/** The connection that is the control plane's own. */
const connection = () => (test.core.platform.store as unknown as { connection: BetterSqlite3.Database }).connection;

/** What makes the database one that cannot be written; the answer undoes it. */
const obstacles: Record<string, () => () => void> = {
  'is full': () => {
    const pages = connection().pragma('page_count', { simple: true }) as number;
    const most = connection().pragma('max_page_count', { simple: true }) as number;
    connection().pragma(`max_page_count = ${pages}`);
    return () => {
      connection().pragma(`max_page_count = ${most}`);
    };
  },
  'is read-only': () => {
    connection().pragma('query_only = ON');
    return () => {
      connection().pragma('query_only = OFF');
    };
  },
  'is held by somebody else': () => {
    connection().pragma('busy_timeout = 1');
    const other = new BetterSqlite3(test.databaseFile);
    other.exec('BEGIN IMMEDIATE');
    return () => {
      other.close();
    };
  },
};

describe.each(Object.keys(obstacles))('a database that %s', (obstacle) => {
  let undo: () => void = () => {};
  const block = () => {
    undo = obstacles[obstacle]?.() ?? undo;
  };
  afterEach(() => undo());

  it('refuses what would be written, says when to come back, and does it then', async () => {
    block();
    const refused = await renter.api.request('POST', '/v1/templates', template);
    expect(refused).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(test.logged(50).join()).toContain('the database cannot be used');
    undo();
    // The disk is looked at once a second.
    test.advance(1_000);
    expect((await renter.api.request('POST', '/v1/templates', template)).status).toBe(201);
  });

  it('answers whatever is only read, also to a session whose end is due to be put off', async () => {
    const document = await fetchDocument(test.url);
    const { secret } = await renter.api.post<{ secret: string }>('/v1/api-keys', { name: 'k' });
    test.clock.advance(2 * HOUR_MS);
    block();
    const paths = Object.entries(document.paths).filter(([path, { get }]) => get && path.startsWith('/v1'));
    expect(paths.length).toBeGreaterThan(25);
    for (const [path] of paths) {
      const api = path.startsWith('/v1/operator') ? test.operator : renter.api;
      const { status, body } = await api.request('GET', path.replace(/\{[^}]+\}/, id));
      // Payouts are with a payment provider, and none is here.
      const expected = path.includes('/payouts/') ? [409] : [200, 404];
      expect(expected, `${path} ${JSON.stringify(body)}`).toContain(status);
    }
    expect((await test.api.as(secret).request('GET', `/v1/instances/${id}`)).status).toBe(200);
  });

  it('answers what is only read also when the clock was set, which is noted once that can be written', async () => {
    block();
    test.clock.step(10 * HOUR_MS);
    expect((await renter.api.request('GET', `/v1/instances/${id}`)).status).toBe(200);
    expect((await renter.api.request('POST', '/v1/templates', template)).status).toBe(503);
    undo();
    test.advance(1);
    expect(await test.operator.get('/v1/operator/clock')).toMatchObject({ held: true, stepped_ms: 10 * HOUR_MS });
    await test.operator.post('/v1/operator/clock/confirm');
  });
});

const SIGN_OUT = '/v1/auth/sign-out';

/** What is served while the disk is full: it ends cost or access, lets somebody in, or keeps what must be kept; and the sign-out. */
const SERVED = [
  'DELETE /v1/api-keys/{id}',
  'DELETE /v1/auth/sessions',
  'DELETE /v1/auth/sessions/{id}',
  'DELETE /v1/instances/{id}',
  'DELETE /v1/operator/instances/{id}',
  'DELETE /v1/operator/machines/{id}/credentials',
  'POST /v1/auth/device',
  'POST /v1/auth/device/token',
  'POST /v1/auth/second-factor',
  'POST /v1/auth/second-factor/passkey',
  'POST /v1/auth/sign-in',
  'POST /v1/instances/estimate',
  'POST /v1/instances/{id}/stop',
  'POST /v1/me/device-codes',
  'POST /v1/me/device-codes/{id}/approve',
  'POST /v1/me/device-codes/{id}/deny',
  'POST /v1/me/proof',
  'POST /v1/me/proof/passkey',
  'POST /v1/operator/clock/confirm',
  'POST /v1/operator/instances/{id}/stop',
  'POST /v1/operator/machines/{id}/cordon',
  'POST /v1/operator/machines/{id}/lost',
  'POST /v1/operator/organizations/{id}/dispute',
  'POST /v1/operator/organizations/{id}/suspend',
  'POST /v1/operator/quarantine/{id}/remove',
  'POST /v1/operator/rollouts/{id}/stop',
  'POST /v1/operator/users/{id}/end-sessions',
];

it('a disk that was found full takes these requests alone, until it is looked at again', async () => {
  const undo = obstacles['is full']?.();
  await renter.api.request('POST', '/v1/templates', template);
  undo?.();
  const { paths } = await fetchDocument(test.url);
  const writes = Object.entries(paths).flatMap(([path, operations]) =>
    Object.keys(operations)
      .filter((method) => ['post', 'put', 'patch', 'delete'].includes(method))
      .map((method) => [method.toUpperCase(), path] as const),
  );
  const served: string[] = [];
  // Without a body or a thing that there is, nothing of it happens.
  for (const [method, path] of writes.filter(([, path]) => path !== SIGN_OUT)) {
    const api = path.startsWith('/v1/operator') ? test.operator : renter.api;
    const { status, body } = await api.request<{ message?: string }>(method, path.replace(/\{[^}]+\}/, NOWHERE));
    if (status !== 503) served.push(`${method} ${path}`);
    else expect(body.message).toContain('the disk of the control plane is full');
  }
  expect(served.sort()).toEqual(SERVED);
  test.advance(1_000);
  expect((await renter.api.request('POST', '/v1/templates', template)).status).toBe(201);
});
