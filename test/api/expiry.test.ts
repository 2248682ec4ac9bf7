import BetterSqlite3 from 'better-sqlite3';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DAY_MS } from '../../shared/time.js';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane } from '../harness/control-plane.js';

let test: TestControlPlane;
beforeAll(async () => {
  test = await TestControlPlane.start();
});
afterAll(() => test.stop());

const rowsOf = (table: string) => Number(/^\d+/.exec(test.dump()[table] ?? '')?.[0]);

it('sessions, invitations and idempotency keys are removed once they have expired, and not before', async () => {
  const renter = await test.renter();
  const agent = await test.host();
  const body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
  await renter.api.request<InstanceBody>('POST', '/v1/instances', body, { 'Idempotency-Key': 'once' });
  await renter.api.post('/v1/orgs/current/invites', { email: 'guest@example.com' });
  agent.close();
  const count = () => ['sessions', 'invites', 'idempotency_keys'].map(rowsOf);
  expect(count()).toEqual([2, 1, 1]);
  test.advance(DAY_MS - 120_000);
  expect(count()).toEqual([2, 1, 1]);
  test.advance(120_000);
  expect(count()).toEqual([2, 1, 0]);
  test.advance(6 * DAY_MS);
  expect(count()).toEqual([2, 0, 0]);
  test.advance(24 * DAY_MS);
  expect(count()).toEqual([0, 0, 0]);
});

it('what is removed is found by an index', () => {
  const database = new BetterSqlite3(test.databaseFile, { readonly: true });
  const plan = (sql: string) =>
    database
      .prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)
      .all()
      .map(({ detail }) => detail)
      .join();
  expect(plan('SELECT id FROM sessions WHERE expires_at <= 1 ORDER BY expires_at LIMIT 5')).toContain(
    'sessions_by_expiry',
  );
  expect(plan('SELECT id FROM invites WHERE expires_at <= 1 ORDER BY expires_at LIMIT 5')).toContain(
    'invites_by_expiry',
  );
  const keys = 'SELECT key FROM idempotency_keys WHERE created_at <= 1 ORDER BY created_at LIMIT 5';
  expect(plan(keys)).toContain('idempotency_keys_by_age');
  database.close();
});
