import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { query } from '../../control-plane/store/sql.js';
import type { ApiClient } from '../harness/api-client.js';
import { exchange } from '../harness/browser.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';

const PASSWORD = 'a renter password';
const COOKIE = '__Host-gpurent';
const SAME = { 'Sec-Fetch-Site': 'same-origin' };
const MARK = { 'X-Same-Origin': '1' };

let test: TestControlPlane;
let renter: Renter;
let api: ApiClient;
let token: string;
beforeAll(async () => {
  test = await TestControlPlane.start();
});
afterAll(() => test.stop());
beforeEach(async () => {
  renter = await test.renter(0);
  token = renter.api.token ?? '';
  api = test.api;
});

const port = () => Number(new URL(test.url).port);
const cookie = (value = token) => ({ Cookie: `${COOKIE}=${value}` });
const refused = { status: 403, body: { code: 'COOKIE_REFUSED' } };
const rename = (headers: Record<string, string>) =>
  api.request('PATCH', '/v1/orgs/current', { name: 'renamed' }, headers);
const me = (headers: Record<string, string>) =>
  api.request<{ user: { email: string } }>('GET', '/v1/me', undefined, headers);

describe('a cookie', () => {
  it('is a credential for what a page of the control plane sends', async () => {
    expect((await me({ ...cookie(), ...SAME })).body.user.email).toBe(renter.email);
    expect(await rename({ ...cookie(), ...SAME, ...MARK })).toMatchObject({ status: 200, body: { name: 'renamed' } });
    expect(await me({ ...cookie(), 'Sec-Fetch-Site': 'none' })).toMatchObject({ status: 200 });
  });

  it('is looked for in one pass, whatever blanks a header has', async () => {
    const blanks = `a${' '.repeat(15_000)}b; ${COOKIE}=${token}`;
    const began = performance.now();
    for (let count = 0; count < 10; count += 1)
      expect((await me({ Cookie: blanks, ...SAME })).body.user.email).toBe(renter.email);
    // For each blank anew, it takes five seconds.
    expect(performance.now() - began).toBeLessThan(1_500);
  });

  it.each([
    ['another site', { 'Sec-Fetch-Site': 'cross-site', ...MARK }],
    ['another port of the name, or a name beside', { 'Sec-Fetch-Site': 'same-site', ...MARK }],
    ['nobody knows where', {}],
    ['another site, by an older browser', { Origin: 'https://evil.example', ...MARK }],
    ['a sandbox, by an older browser', { Origin: 'null', ...MARK }],
  ])('is none for a request from %s', async (_, headers) => {
    const before = test.dump();
    expect(await rename({ ...cookie(), ...headers })).toMatchObject(refused);
    expect(await me({ ...cookie(), ...headers })).toMatchObject(refused);
    expect(test.dump()).toEqual(before);
  });

  it('changes nothing without the header that forms cannot send, or from the address bar', async () => {
    const before = test.dump();
    for (const headers of [SAME, { ...SAME, 'X-Same-Origin': '' }, { 'Sec-Fetch-Site': 'none', ...MARK }])
      expect(await rename({ ...cookie(), ...headers })).toMatchObject(refused);
    // What a form can send without a body.
    const form = { ...cookie(), ...SAME, 'Content-Type': 'application/x-www-form-urlencoded' };
    expect(await api.request('POST', '/v1/auth/sign-out', '', form)).toMatchObject(refused);
    expect(test.dump()).toEqual(before);
  });

  it('of an older browser, which says only its origin, is one from the origin of the request', async () => {
    const { origin } = new URL(test.url);
    expect(await rename({ ...cookie(), Origin: origin, ...MARK })).toMatchObject({ status: 200 });
    expect(await rename({ ...cookie(), Origin: origin.replace('http:', 'https:'), ...MARK })).toMatchObject(refused);
    expect(await rename({ ...cookie(), Origin: `${origin}0`, ...MARK })).toMatchObject(refused);
    expect(await me({ ...cookie(), ...MARK })).toMatchObject({ status: 200 });
  });

  it('of an older browser is one from the configured origin alone', async () => {
    const { origin } = new URL(test.url);
    const behind = await TestControlPlane.start();
    await behind.restart({ publicUrl: 'https://gpus.example' });
    const { api: own } = await behind.renter(0);
    const headers = { Cookie: `${COOKIE}=${own.token ?? ''}`, ...MARK };
    const change = (Origin: string) => behind.api.request('POST', '/v1/orgs', { name: 'x' }, { ...headers, Origin });
    expect(await change('https://gpus.example')).toMatchObject({ status: 201 });
    expect(await change(origin)).toMatchObject(refused);
    expect(await change(behind.url)).toMatchObject(refused);
    await behind.stop();
  });

  it('does not count beside Authorization, whatever that says', async () => {
    const other = await test.renter(0);
    const bearer = (value: string) => ({ Authorization: value, ...cookie(), ...SAME, ...MARK });
    const own = await me({ ...bearer(`Bearer ${other.api.token}`), 'Sec-Fetch-Site': 'cross-site' });
    expect(own.body.user.email).toBe(other.email);
    for (const value of ['Bearer nonsense', 'Bearer', 'Basic eDp5', ''])
      expect(await me(bearer(value)), value).toMatchObject({ status: 401, body: { code: 'TOKEN_INVALID' } });
  });

  it('is one for sessions only, and only as the browser has got it', async () => {
    const { secret } = await renter.api.post<{ secret: string }>('/v1/api-keys', { name: 'k' });
    const offers = await api.request('GET', '/v1/offers', undefined, { ...cookie(secret), ...SAME });
    expect(offers).toMatchObject({ status: 401, body: { code: 'TOKEN_INVALID' } });
    const values = [secret, '', 'x', `${token}0`, token.toUpperCase(), `"${token}"`, `ses_${'0'.repeat(64)}`];
    for (const value of values) expect(await me({ ...cookie(value), ...SAME }), value).toMatchObject({ status: 401 });
    for (const name of ['gpurent', '__host-gpurent', '__Secure-gpurent', '\u00a0__Host-gpurent', '__Host-gpurent-form'])
      expect(await me({ Cookie: `${name}=${token}`, ...SAME }), name).toMatchObject({ status: 401 });
    expect(await me({ Cookie: `a=b; ${COOKIE}=${token};c`, ...SAME })).toMatchObject({ status: 200 });
  });

  it('that comes twice is none: nobody knows which is the browser’s', async () => {
    const other = await test.renter(0);
    for (const [one, two] of [
      [token, other.api.token],
      [token, token],
      ['x', token],
    ])
      expect(await me({ Cookie: `${COOKIE}=${one}; ${COOKIE}=${two}`, ...SAME })).toMatchObject({ status: 401 });
  });

  it('ends with its session', async () => {
    const signOut = await api.request('POST', '/v1/auth/sign-out', undefined, { ...cookie(), ...SAME, ...MARK });
    expect(signOut.status).toBe(204);
    expect(signOut.headers.get('set-cookie')).toBe(`${COOKIE}=; Max-Age=0; Path=/; Secure; HttpOnly; SameSite=Lax`);
    expect(await me({ ...cookie(), ...SAME })).toMatchObject({ status: 401 });
  });

  it('is set by no answer of the API', async () => {
    const answer = await api.request('POST', '/v1/auth/sign-in', { email: renter.email, password: PASSWORD });
    expect([answer.status, answer.headers.get('set-cookie')]).toEqual([200, null]);
    const signOut = await renter.api.request('POST', '/v1/auth/sign-out');
    expect(signOut.headers.get('set-cookie')).toBeNull();
  });

  it('chooses an organization by X-Org-Id, like any session', async () => {
    const { id } = await renter.api.post<{ id: string }>('/v1/orgs', { name: 'second' });
    const current = await api.request('GET', '/v1/orgs/current', undefined, { ...cookie(), ...SAME, 'X-Org-Id': id });
    expect(current).toMatchObject({ status: 200, body: { name: 'second' } });
  });

  it('opens no route of operators, and does not tell which there are', async () => {
    const operator = { Cookie: `${COOKIE}=${test.operator.token}` };
    const paths = ['/v1/operator/machines', '/v1/operator/nothing'];
    for (const path of paths) {
      expect(await api.request('GET', path, undefined, operator)).toMatchObject(refused);
      expect(await api.request('GET', path, undefined, { ...cookie(), ...SAME })).toMatchObject({ status: 404 });
    }
    expect(await api.request('GET', paths[0] ?? '', undefined, { ...operator, ...SAME })).toMatchObject({
      status: 200,
    });
  });

  it('reads a stream of events for a page, until its session ends, and for nobody else', async () => {
    const stream = (headers: Record<string, string>) =>
      fetch(`${test.url}/v1/events`, { headers: { Accept: 'text/event-stream', ...cookie(), ...headers } });
    for (const headers of [{}, { 'Sec-Fetch-Site': 'cross-site' }, { 'Sec-Fetch-Site': 'same-site' }])
      expect((await stream(headers)).status).toBe(403);
    const open = await stream(SAME);
    expect(open.status).toBe(200);
    await renter.api.post('/v1/auth/sign-out');
    // Ends by itself.
    expect(await open.text()).toContain('may not read these events any more');
  });
});

describe('answers', () => {
  it('are for no page of another origin, and for no cache', async () => {
    for (const path of ['/v1/me', '/%761/me', '/v1/nothing']) {
      const { headers } = await fetch(test.url + path, { headers: { ...cookie(), ...SAME } });
      expect(headers.get('cross-origin-resource-policy'), path).toBe('same-origin');
      expect(headers.get('cache-control'), path).toBe('no-store');
      expect(headers.get('x-content-type-options'), path).toBe('nosniff');
    }
    const preflight = await fetch(`${test.url}/v1/me`, {
      method: 'OPTIONS',
      headers: { Origin: 'https://evil.example', 'Access-Control-Request-Method': 'POST' },
    });
    expect(preflight.status).toBe(405);
    expect([...preflight.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
  });

  it('to cookies that are too long say so', async () => {
    const long = await api.request('GET', '/v1/me', undefined, { Cookie: `x=${'a'.repeat(17_000)}` });
    expect(long).toMatchObject({ status: 431, body: { code: 'HEADERS_TOO_LARGE' } });
  });
});

describe('at a name at which instances are reached', () => {
  const at = async (host: string) => {
    const headers = { host, cookie: `${COOKIE}=${token}`, 'sec-fetch-site': 'same-origin' };
    const { status, text } = await exchange(port(), new URL('/v1/me', test.url), { method: 'GET', headers });
    return { status, body: JSON.parse(text) as { code?: string; message?: string } };
  };

  it.each([
    ['203.0.113.7', ['203.0.113.7', '203.0.113.7:8443']],
    ['Gpu1.Example.com', ['gpu1.example.com', 'GPU1.example.com:443', 'gpu1.example.com.']],
    ['2001:DB8:0:0::7', ['[2001:db8::7]', '[2001:0db8::0:7]:8443']],
    ['localhost', ['localhost:8080']],
  ])('%s: no cookie is a credential, and the answer says what to do', async (publicAddress, hosts) => {
    for (const host of hosts) expect(await at(host), host).toMatchObject({ status: 200 });
    const { hostId } = await test.host({ publicAddress });
    for (const host of hosts) {
      const refusal = await at(host);
      expect(refusal, host).toMatchObject(refused);
      expect(refusal.body.message).toMatch(/instances are reached at .*localhost.*GPURENT_PUBLIC_URL/);
    }
    for (const host of ['gpus.example', 'api.gpu1.example.com']) expect((await at(host)).status, host).toBe(200);
    // Programs are not concerned.
    expect((await renter.api.request('GET', '/v1/me')).status).toBe(200);
    test.core.platform.store.transact((tx) =>
      tx.run(query.updateTable('machines').set({ removed_at: tx.now }).where('id', '=', hostId)),
    );
    for (const host of hosts) expect((await at(host)).status, host).toBe(200);
  });

  it('a proxy that hides the name, or the name that is configured, does not help', async () => {
    await test.host({ publicAddress: 'gpus.example' });
    const forwarded = { ...cookie(), ...SAME, 'X-Forwarded-Host': 'gpus.example' };
    expect(await me(forwarded)).toMatchObject(refused);
    await test.restart({ publicUrl: 'https://gpus.example' });
    expect(await me({ ...cookie(), ...SAME })).toMatchObject(refused);
  });

  it('the configured name is refused as the address of a host that did not have it before', async () => {
    const own = await TestControlPlane.start();
    const before = await own.host({ publicAddress: 'gpus.example' });
    const liar = await own.host({ publicAddress: 'gpu2.example' });
    await own.restart({ publicUrl: 'https://gpus.example:8443' });
    await before.connect();
    await expect(own.host({ publicAddress: 'GPUS.example' })).rejects.toThrow(
      /is the name of the control plane itself/,
    );
    liar.inventory['publicAddress'] = 'Gpus.example';
    const machines = own.dump()['machines'];
    await expect(liar.connect()).rejects.toThrow(/is the name of the control plane itself/);
    expect(own.dump()['machines']).toEqual(machines);
    await own.stop();
  });
});
