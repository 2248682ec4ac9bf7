import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import { TestControlPlane } from '../harness/control-plane.js';

let test: TestControlPlane;
afterEach(() => test.stop());

const from = (address: string) => ({ 'X-Forwarded-For': address });

describe('too many requests', () => {
  it('of one address are told when to come back, and others are served', async () => {
    test = await TestControlPlane.start({ rateLimits: { perAddress: 3 } });
    const ask = (address: string) => test.api.request('GET', '/healthz', undefined, from(address));
    const statuses = [];
    for (let count = 0; count < 4; count++) statuses.push((await ask('198.51.100.1')).status);
    expect(statuses).toEqual([200, 200, 200, 429]);
    const refused = await ask('198.51.100.1');
    expect(refused.body).toMatchObject({ code: 'RATE_LIMITED', retry_after_seconds: expect.any(Number) as number });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await ask('198.51.100.2')).status).toBe(200);
  });

  it('count an IPv6 network as one address, and unknown addresses of the API as requests', async () => {
    test = await TestControlPlane.start({ rateLimits: { perAddress: 2 } });
    const ask = (address: string) => test.api.request('GET', '/v1/nothing', undefined, from(address));
    expect((await ask('2001:db8::1')).status).toBe(404);
    expect((await ask('2001:db8::2')).status).toBe(404);
    expect((await ask('2001:db8::3')).status).toBe(429);
    expect((await ask('2001:db8:0:1::1')).status).toBe(429);
    expect((await ask('2001:db8:1::1')).status).toBe(404);
  });

  it('with one credential leave other credentials alone, whatever their address', async () => {
    test = await TestControlPlane.start({ rateLimits: { perCredential: 20 } });
    const [one, other] = [await test.renter(0), await test.renter(0)];
    const answers = await Promise.all(Array.from({ length: 21 }, () => one.api.request('GET', '/v1/me')));
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array.from({ length: 20 }, () => 200), 429]);
    expect((await other.api.request('GET', '/v1/me')).status).toBe(200);
  });

  it('at the password of one account use up the attempts of their own network, in whatever case it is spelt', async () => {
    test = await TestControlPlane.start({ rateLimits: { attemptsPerAccount: 3 } });
    const renter = await test.renter(0);
    const attempt = (email: string, address: string, password = 'wrong') =>
      test.api.request('POST', '/v1/auth/sign-in', { email, password }, from(address));
    expect((await attempt(renter.email, '2001:db8:1::1')).status).toBe(401);
    expect((await attempt(renter.email.toUpperCase(), '2001:db8:1:2::3')).status).toBe(401);
    expect((await attempt(renter.email, '2001:db8:1:ffff::4')).status).toBe(401);
    expect((await attempt(renter.email, '2001:db8:1:5::6')).body).toMatchObject({ code: 'RATE_LIMITED' });
    expect((await attempt(renter.email, '198.51.100.4', 'a renter password')).status).toBe(200);
    // Who is signed in is not locked out by them, and is counted, too.
    const guess = { current_password: 'wrong', new_password: 'a longer password' };
    const statuses = [];
    for (let count = 0; count < 4; count++) {
      statuses.push((await renter.api.request('POST', '/v1/auth/password', guess)).status);
    }
    expect(statuses).toEqual([401, 401, 401, 429]);
  });

  it('at the password of one account from many networks lock out none that it is signed in from', async () => {
    test = await TestControlPlane.start({ rateLimits: { attemptsPerAccount: 2 } });
    const renter = await test.renter(0);
    const attempt = (address: string, password = 'wrong') =>
      test.api.request('POST', '/v1/auth/sign-in', { email: renter.email, password }, from(address));
    expect((await attempt('198.51.100.1', 'a renter password')).status).toBe(200);
    const statuses = new Set<number>();
    for (let network = 1; network <= 41; network++) statuses.add((await attempt(`203.0.113.${network}`)).status);
    expect(statuses).toEqual(new Set([401, 429]));
    expect((await attempt('203.0.113.99', 'a renter password')).status).toBe(429);
    expect((await attempt('198.51.100.1', 'a renter password')).status).toBe(200);
  });

  it('at the password of an owner who is signed in nowhere lock out no network of an earlier sign-in', async () => {
    test = await TestControlPlane.start({ rateLimits: { attemptsPerAccount: 2 } });
    const renter = await test.renter(0);
    const attempt = (address: string, password = 'wrong') =>
      test.api.request<{ token: string }>('POST', '/v1/auth/sign-in', { email: renter.email, password }, from(address));
    const { body } = await attempt('198.51.100.1', 'a renter password');
    for (const api of [test.api.as(body.token), renter.api])
      expect((await api.request('POST', '/v1/auth/sign-out')).status).toBe(204);
    for (let network = 1; network <= 41; network++) await attempt(`203.0.113.${network}`);
    expect((await attempt('203.0.113.99', 'a renter password')).body).toMatchObject({ code: 'RATE_LIMITED' });
    expect((await attempt('198.51.100.1', 'a renter password')).status).toBe(200);
    // A stranger in that network has the bound of a network.
    expect((await attempt('198.51.100.1')).body).toMatchObject({ code: 'RATE_LIMITED' });
  });

  it('at passwords of many accounts are stopped by their address', async () => {
    test = await TestControlPlane.start({ rateLimits: { attemptsPerAddress: 2 } });
    const attempt = (name: string) =>
      test.api.request(
        'POST',
        '/v1/auth/sign-in',
        { email: `${name}@example.com`, password: 'x' },
        from('203.0.113.1'),
      );
    const statuses = [];
    for (const name of ['a', 'b', 'c']) statuses.push((await attempt(name)).status);
    expect(statuses).toEqual([401, 401, 429]);
  });
});

describe('what is no proper request', () => {
  const send = async (bytes: string): Promise<string> => {
    const { hostname, port } = new URL(test.api.baseUrl);
    const socket = connect(Number(port), hostname);
    socket.write(bytes);
    return text(socket);
  };

  it.each([
    [
      'headers of 17 KiB',
      `GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(17 * 1024)}\r\n\r\n`,
      431,
      'HEADERS_TOO_LARGE',
    ],
    ['no HTTP', 'hello\r\n\r\n', 400, 'MALFORMED_REQUEST'],
    [
      'an address that cannot be decoded',
      'GET /v1/offers/%ff HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
      404,
      'NOT_FOUND',
    ],
  ])('%s is refused in the API’s own words', async (_what, bytes, status, code) => {
    test = await TestControlPlane.start();
    const answer = await send(bytes);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    const body: unknown = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4));
    expect(body).toEqual({ code, message: expect.any(String) as string, request_id: expect.any(String) as string });
    expect((await test.api.request('GET', '/healthz')).status).toBe(200);
  });
});
