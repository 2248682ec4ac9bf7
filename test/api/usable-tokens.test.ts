import BetterSqlite3 from 'better-sqlite3';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { HOUR_MS } from '../../shared/time.js';
import { restOf } from '../../control-plane/services/system/pages.js';
import { BY_EXPIRY, usableTokens } from '../../control-plane/services/machines/enrollment.js';
import { TestControlPlane } from '../harness/control-plane.js';
import { FakeAgent } from '../harness/fake-agent.js';
import { pretendFull } from '../harness/full-disk.js';

const PATH = '/v1/operator/enrollment-tokens';

interface Token {
  id: string;
  token: string;
}

let test: TestControlPlane;
beforeAll(async () => {
  test = await TestControlPlane.start();
});
afterAll(() => test.stop());

const make = (body: object) => test.operator.post<Token>(PATH, body);
const list = async (asked = '') => {
  const { items } = await test.operator.get<{ items: Token[] }>(`${PATH}?usable=true${asked}`);
  return items.map(({ id }) => id);
};

it('a new host is refused while the disk is full, and its token stays good', async () => {
  const { id, token } = await make({});
  const makeRoom = pretendFull(test.core);
  await expect(FakeAgent.enroll(test.grpcAddress, token)).rejects.toThrow('the disk of the control plane is full');
  expect(await list()).toEqual([id]);
  makeRoom();
  await FakeAgent.enroll(test.grpcAddress, token);
  expect(await list()).toEqual([]);
});

it('lists the tokens with which a host can still enroll, the one that expires first first, without the tokens', async () => {
  const [later, once, sooner, revoked, twice] = [
    await make({ expires_in_hours: 30 }),
    await make({}),
    await make({ expires_in_hours: 2 }),
    await make({}),
    await make({ max_uses: 2, expires_in_hours: 40 }),
  ];
  await test.operator.request('DELETE', `${PATH}/${revoked.id}`);
  for (const { token } of [once, twice]) await FakeAgent.enroll(test.grpcAddress, token);
  expect(await list()).toEqual([sooner.id, later.id, twice.id]);
  const first = await test.operator.get<{ items: Token[]; next_cursor: string }>(`${PATH}?usable=true&limit=1`);
  expect(await list(`&limit=2&cursor=${first.next_cursor}`)).toEqual([later.id, twice.id]);
  expect(JSON.stringify(first)).not.toContain(sooner.token);
  test.clock.advance(2 * HOUR_MS);
  expect(await list()).toEqual([later.id, twice.id]);
  // Without the filter, and with false, the list is as it was.
  const all = await test.operator.get<{ items: Token[] }>(PATH);
  expect(await test.operator.get(`${PATH}?usable=false`)).toEqual(all);
  expect(all.items.map(({ id }) => id)).toEqual(expect.arrayContaining([once.id, revoked.id, sooner.id]));
});

it('reads no token that is used up, revoked or expired', () => {
  const database = new BetterSqlite3(test.databaseFile, { readonly: true });
  for (const request of [{}, { cursor: Buffer.from('[1,"i"]').toString('base64url') }]) {
    const { sql, parameters } = restOf(usableTokens(0), request, BY_EXPIRY.by).compile();
    const plan = database.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters);
    expect(plan.map(({ detail }) => detail)).toEqual([
      expect.stringMatching(/^SEARCH enrollment_tokens USING INDEX enrollment_tokens_usable /),
      // Whether its maker is an operator.
      expect.stringMatching(/^CORRELATED SCALAR SUBQUERY/),
      expect.stringMatching(/^SEARCH users USING INDEX sqlite_autoindex_users_1 /),
    ]);
  }
  database.close();
});
