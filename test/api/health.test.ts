import { statSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { VERSION } from '../../shared/version.js';
import { query } from '../../control-plane/store/sql.js';
import { TestControlPlane } from '../harness/control-plane.js';

let test: TestControlPlane;
beforeAll(async () => {
  test = await TestControlPlane.start();
});
afterAll(() => test.stop());

const ask = (path: string) => test.api.request<{ code?: string; message?: string }>('GET', path);

it('liveness names the version', async () => {
  expect(await ask('/healthz')).toMatchObject({ status: 200, body: { status: 'ok', version: VERSION } });
});

it('readiness is that of the database, and is found out at most once a second', async () => {
  expect((await ask('/readyz')).status).toBe(200);
  const { store } = test.core.platform;
  const transact = store.transact.bind(store);
  let tries = 0;
  store.transact = () => {
    tries++;
    throw new Error('disk I/O error at /secret/place');
  };
  test.advance(1_000);
  tries = 0;
  const refused = await ask('/readyz');
  expect(refused).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
  expect(refused.body.message).not.toContain('/secret/place');
  await ask('/readyz');
  expect(tries).toBe(1);
  // Whoever restarts what does not answer is not misled.
  expect((await ask('/healthz')).status).toBe(200);
  store.transact = transact;
  test.advance(1_000);
  expect((await ask('/readyz')).status).toBe(200);
});

it('the write-ahead log is given back while nothing happens', () => {
  const large = query.insertInto('meta').values({ key: 'large', value: 'x'.repeat(2 * 1024 * 1024) });
  test.core.platform.store.transact((tx) => tx.run(large));
  test.advance(1);
  test.advance(1);
  expect(statSync(`${test.databaseFile}-wal`).size).toBe(0);
});
