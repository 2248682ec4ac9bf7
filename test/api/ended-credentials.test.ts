import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sql, statement } from '../../control-plane/store/sql.js';
import { World, type Key } from '../contract/world.js';

let world: World;
beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.stop());

describe('what has begun when its credential ends', () => {
  /** Sends a request whose body waits for `meanwhile`, and returns the answer. */
  async function slowly(
    method: string,
    path: string,
    token: string | undefined,
    body: object,
    meanwhile: () => Promise<unknown>,
  ) {
    const text = JSON.stringify(body);
    const sent = request(`${world.test.url}${path}`, {
      method,
      agent: false,
      headers: {
        Authorization: `Bearer ${token}`,
        'Content-Type': 'application/json',
        'Content-Length': Buffer.byteLength(text),
        // Answered once the headers were looked at.
        Expect: '100-continue',
        'X-Org-Id': world.admin.organizationId,
      },
    });
    sent.flushHeaders();
    await once(sent, 'continue');
    await meanwhile();
    sent.end(text);
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    let received = '';
    for await (const part of answer) received += String(part);
    return { status: answer.statusCode, body: JSON.parse(received) as { code?: string } };
  }

  it('a request whose body arrives later is refused', async () => {
    const key = await world.key();
    const { body } = await world.host();
    const revoke = () => world.admin.api.delete(`/v1/api-keys/${key.key.id}`);
    const answer = await slowly('POST', '/v1/instances', key.secret, body, revoke);
    expect(answer).toMatchObject({ status: 401, body: { code: 'TOKEN_INVALID' } });
  });

  it('a member who is made a viewer while the body arrives makes no key', async () => {
    const member = await world.join();
    const demote = () =>
      world.admin.api.request('PATCH', `/v1/orgs/current/members/${member.userId}`, { role: 'viewer' });
    const answer = await slowly('POST', '/v1/api-keys', member.api.token, { name: 'late' }, demote);
    expect(answer).toMatchObject({ status: 403, body: { code: 'ROLE_NOT_ALLOWED' } });
  });

  it('a member who is removed while the body arrives makes no key, and the request acts nowhere else', async () => {
    const member = await world.join();
    const remove = () => world.admin.api.delete(`/v1/orgs/current/members/${member.userId}`);
    const answer = await slowly('POST', '/v1/api-keys', member.api.token, { name: 'late' }, remove);
    expect(answer).toMatchObject({ status: 403, body: { code: 'ORG_MISMATCH' } });
  });

  it.each(['/v1/billing/transactions', '/v1/billing/transactions.csv'])('%s is cut off', async (path) => {
    const renter = await world.test.renter(1_000_000);
    const { key, secret } = await renter.api.post<Key>('/v1/api-keys', { name: 'reader' });
    const store = world.test.core.platform.store;
    const rows = `SELECT '${renter.userId}' || i, organization_id, kind, amount_micro, created_at
      FROM n, (SELECT * FROM transactions WHERE organization_id = '${renter.organizationId}' LIMIT 1)`;
    const numbers = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)';
    const into = 'INSERT INTO transactions (id, organization_id, kind, amount_micro, created_at)';
    store.transact((tx) => tx.run(statement(sql.raw(`${numbers} ${into} ${rows}`))));
    const answer = await fetch(`${world.test.url}${path}`, { headers: { Authorization: `Bearer ${secret}` } });
    expect(answer.status).toBe(200);
    store.transact((tx) => tx.run(statement(sql`UPDATE api_keys SET revoked_at = ${tx.now} WHERE id = ${key.id}`)));
    await expect(answer.text()).rejects.toThrow();
    const whole = await fetch(`${world.test.url}${path}`, { headers: { Authorization: `Bearer ${renter.api.token}` } });
    expect((await whole.text()).length).toBeGreaterThan(1_000_000);
    store.transact((tx) => tx.run(statement(sql.raw(`DELETE FROM transactions WHERE id LIKE '${renter.userId}%'`))));
  });
});
