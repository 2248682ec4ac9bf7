import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DAY_MS, MINUTE_MS } from '../../shared/time.js';
import { query } from '../../control-plane/store/sql.js';
import type { ApiClient } from '../harness/api-client.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';

const PASSWORD = 'a renter password';

interface SessionBody {
  id: string;
  name: string | null;
  device: string | null;
  address: string | null;
  created_at: string;
  last_used_at: string;
  is_current: boolean;
}

let test: TestControlPlane;
let renter: Renter;
beforeAll(async () => {
  test = await TestControlPlane.start();
});
afterAll(() => test.stop());
beforeEach(async () => {
  renter = await test.renter(0);
});

async function signIn(headers: Record<string, string> = {}, { email } = renter): Promise<ApiClient> {
  const body = { email, password: PASSWORD };
  const answer = await test.api.request<{ token: string }>('POST', '/v1/auth/sign-in', body, headers);
  return test.api.as(answer.body.token);
}

const sessionsOf = async (api: ApiClient) => (await api.get<{ items: SessionBody[] }>('/v1/auth/sessions')).items;
const iso = (at: number) => new Date(at).toISOString();
const isAlive = async (api: ApiClient) => (await api.request('GET', '/v1/me')).status === 200;

describe('the list of sessions', () => {
  it('says of each the device, the address and the last use, and which one asks', async () => {
    const signedUpAt = test.clock.now();
    test.clock.advance(MINUTE_MS);
    const phone = await signIn({
      'User-Agent':
        'Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1',
      'X-Forwarded-For': '203.0.113.9',
    });
    const signedInAt = test.clock.now();
    const { device, address, last_used_at } = (await sessionsOf(renter.api))[0] ?? {};
    expect([device, address, last_used_at]).toEqual(['Safari on an iPhone', '203.0.113.9', iso(signedInAt)]);
    test.clock.advance(MINUTE_MS);
    await phone.request('GET', '/v1/offers', undefined, { 'X-Forwarded-For': '2001:db8:1:2::3' });
    const usedAt = test.clock.now();
    const expected = [
      {
        id: expect.any(String) as string,
        name: null,
        device: 'Safari on an iPhone',
        address: '2001:db8:1::/48',
        created_at: iso(signedInAt),
        last_used_at: iso(usedAt),
        is_current: false,
      },
      {
        id: expect.any(String) as string,
        name: null,
        device: 'A Node.js program',
        address: '127.0.0.1',
        created_at: iso(signedUpAt),
        last_used_at: iso(usedAt),
        is_current: true,
      },
    ];
    expect(await sessionsOf(renter.api)).toEqual(expected);
    // Whether it was written yet or not, and after a restart.
    test.advance(1_000);
    await test.restart();
    const [first, second] = await sessionsOf(renter.api);
    expect(first).toEqual(expected[0]);
    expect(second).toMatchObject({ last_used_at: iso(test.clock.now()), is_current: true });
  });

  it('has no session that has expired, and none of others', async () => {
    const [old, other] = [await signIn(), await test.renter(0)];
    expect(await isAlive(old)).toBe(true);
    test.clock.advance(20 * DAY_MS);
    await sessionsOf(renter.api);
    expect(await sessionsOf(renter.api)).toHaveLength(2);
    test.clock.advance(20 * DAY_MS);
    expect(await sessionsOf(renter.api)).toMatchObject([{ is_current: true }]);
    expect(JSON.stringify(await sessionsOf(renter.api))).not.toContain(other.userId);
  });

  it('of one that an older release has opened says what is known of it', async () => {
    const unknown = { device: null, network: null, last_network: null, last_used_at: null };
    const old = await signIn();
    const id = (await sessionsOf(renter.api)).find(({ is_current }) => !is_current)?.id ?? '';
    test.core.platform.store.transact((tx) => tx.run(query.updateTable('sessions').set(unknown).where('id', '=', id)));
    const session = (await sessionsOf(renter.api)).find((each) => each.id === id);
    expect(session).toMatchObject({ device: null, address: null, last_used_at: session?.created_at });
    expect(await isAlive(old)).toBe(true);
  });
});

describe('a session is ended', () => {
  it('one by one, at once', async () => {
    const other = await signIn();
    const [ended] = (await sessionsOf(renter.api)).filter(({ is_current }) => !is_current);
    expect(await isAlive(other)).toBe(true);
    expect((await renter.api.request('DELETE', `/v1/auth/sessions/${ended?.id}`)).status).toBe(204);
    expect(await isAlive(other)).toBe(false);
    expect(await isAlive(renter.api)).toBe(true);
    const again = await renter.api.request('DELETE', `/v1/auth/sessions/${ended?.id}`);
    expect(again).toMatchObject({ status: 404, body: { code: 'SESSION_NOT_FOUND' } });
  });

  it('by itself, too', async () => {
    const [own] = await sessionsOf(renter.api);
    expect((await renter.api.request('DELETE', `/v1/auth/sessions/${own?.id}`)).status).toBe(204);
    expect(await isAlive(renter.api)).toBe(false);
  });

  it('but not by others, who do not learn of it', async () => {
    const stranger = await test.renter(0);
    const [own] = await sessionsOf(renter.api);
    const before = test.dump();
    const foreign = await stranger.api.request('DELETE', `/v1/auth/sessions/${own?.id}`);
    expect(foreign).toMatchObject({ status: 404, body: { code: 'SESSION_NOT_FOUND' } });
    expect(test.dump()).toEqual(before);
  });

  it('with all others', async () => {
    const stranger = await test.renter(0);
    const others = [await signIn(), await signIn()];
    const answer = await renter.api.request('DELETE', '/v1/auth/sessions');
    expect(answer).toMatchObject({ status: 200, body: { ended: 2 } });
    for (const other of others) expect(await isAlive(other)).toBe(false);
    expect([await isAlive(renter.api), await isAlive(stranger.api)]).toEqual([true, true]);
  });

  it('when there are too many: the one that was not used for the longest time', async () => {
    test.clock.advance(MINUTE_MS);
    const unused = await signIn();
    const stranger = await test.renter(0);
    const opened: ApiClient[] = [];
    for (let count = 0; count < 98; count++) {
      test.clock.advance(1);
      opened.push(await signIn());
    }
    test.clock.advance(MINUTE_MS);
    // The oldest of all, but used: known in memory alone.
    expect(await isAlive(renter.api)).toBe(true);
    expect(await sessionsOf(renter.api)).toHaveLength(100);
    const last = await signIn();
    expect(await sessionsOf(last)).toHaveLength(100);
    expect(await isAlive(unused)).toBe(false);
    test.advance(1_000);
    await signIn();
    expect(await isAlive(test.api.as(opened[0]?.token))).toBe(false);
    expect([await isAlive(renter.api), await isAlive(stranger.api)]).toEqual([true, true]);
  });
});

describe('a change of the password', () => {
  const changed = 'another renter password';
  const change = (more: object = {}) =>
    renter.api.request('POST', '/v1/auth/password', { current_password: PASSWORD, new_password: changed, ...more });
  const keysOf = async () => (await renter.api.get<{ items: { name: string }[] }>('/v1/api-keys')).items;
  const makeKeys = async () => {
    for (const kind of ['personal', 'team']) await renter.api.post('/v1/api-keys', { name: kind, kind });
  };

  it('ends all other sessions, and leaves the keys', async () => {
    await makeKeys();
    const other = await signIn();
    expect((await change()).status).toBe(204);
    expect([await isAlive(renter.api), await isAlive(other)]).toEqual([true, false]);
    expect(await keysOf()).toHaveLength(2);
  });

  it('revokes the keys of the user if that is asked for, and nobody else’s', async () => {
    await makeKeys();
    const stranger = await test.renter(0);
    await stranger.api.post('/v1/api-keys', { name: 'k' });
    expect((await change({ revoke_api_keys: true })).status).toBe(204);
    expect(await keysOf()).toEqual([]);
    expect((await stranger.api.get<{ items: object[] }>('/v1/api-keys')).items).toHaveLength(1);
    const { items } = await renter.api.get<{ items: { type: string }[] }>('/v1/events?type=api_key.revoked');
    expect(items).toHaveLength(2);
  });

  it('that is refused changes neither', async () => {
    await makeKeys();
    const other = await signIn();
    const wrong = { current_password: 'a wrong password', revoke_api_keys: true };
    const before = test.dump();
    expect(await change(wrong)).toMatchObject({ status: 401, body: { code: 'INVALID_CREDENTIALS' } });
    expect(test.dump()).toEqual(before);
    expect(await isAlive(other)).toBe(true);
    expect(await change({ revoke_api_keys: 'yes' })).toMatchObject({ status: 422 });
  });
});
