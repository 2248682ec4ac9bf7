import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isPrivateKey } from '../../client/text/ssh-keys.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import { makeKeyPair, makePublicKey } from '../harness/keys.js';

let test: TestControlPlane;
let renter: Renter;

beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
});
afterAll(() => test.stop());

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

interface KeyAnswer {
  key: Record<string, unknown> & { id: string };
  secret: string;
}

describe('accounts', () => {
  const account = { email: 'ann@example.com', password: 'correct horse battery', name: 'Ann' };

  it('sign up, sign in and sign out', async () => {
    const signedUp = await test.api.request<{ token: string; expires_at: string }>('POST', '/v1/auth/sign-up', account);
    expect(signedUp.status).toBe(201);
    expect(signedUp.body).toMatchObject({
      token: expect.stringMatching(/^ses_[0-9a-f]{64}$/) as string,
      expires_at: expect.stringMatching(TIME) as string,
      user: { id: expect.stringMatching(UUID) as string, email: account.email },
      organization: { role: 'admin' },
    });
    const { token } = await test.api.post<{ token: string }>('/v1/auth/sign-in', { ...account, name: undefined });
    const session = test.api.as(token);
    expect(await session.get('/v1/me')).toMatchObject({ user: { email: account.email, is_operator: false } });
    expect((await session.request('POST', '/v1/auth/sign-out')).status).toBe(204);
    expect(await session.request('GET', '/v1/me')).toMatchObject({ status: 401, body: { code: 'TOKEN_INVALID' } });
  });

  it('refuse a taken address in any case, and tell a wrong password and an unknown address apart to nobody', async () => {
    const taken = await test.api.request('POST', '/v1/auth/sign-up', { ...account, email: 'ANN@example.com' });
    expect(taken).toMatchObject({ status: 409, body: { code: 'EMAIL_TAKEN' } });
    const wrong = await test.api.request<{ message: string }>('POST', '/v1/auth/sign-in', {
      email: account.email,
      password: 'x',
    });
    const unknown = await test.api.request<{ message: string }>('POST', '/v1/auth/sign-in', {
      email: 'no@one.example',
      password: 'x',
    });
    expect(wrong).toMatchObject({ status: 401, body: { code: 'INVALID_CREDENTIALS' } });
    expect(unknown.body.message).toBe(wrong.body.message);
  });
});

describe('API keys', () => {
  it('show their secret once, and are used, listed and revoked', async () => {
    const created = await renter.api.request<KeyAnswer>('POST', '/v1/api-keys', { name: 'ci' });
    expect(created.status).toBe(201);
    const { key, secret } = created.body;
    expect(secret).toMatch(/^svc_[0-9a-f]{48}$/);
    expect(key).toMatchObject({ name: 'ci', kind: 'personal', prefix: secret.slice(0, 12), last_used_at: null });
    expect(key).toMatchObject({ creator_email: renter.email, creator_id: renter.userId, creator_is_member: true });

    const script = test.api.as(secret);
    test.clock.advance(1_000);
    const { items } = await script.get<{ items: Record<string, unknown>[] }>('/v1/api-keys');
    expect(items[0]).toMatchObject({ id: key.id, last_used_at: new Date(test.clock.now()).toISOString() });
    expect(JSON.stringify(items)).not.toContain(secret);

    expect((await renter.api.request('DELETE', `/v1/api-keys/${key.id}`)).status).toBe(204);
    expect(await script.request('GET', '/v1/instances')).toMatchObject({
      status: 401,
      body: { code: 'TOKEN_INVALID' },
    });
    expect(await renter.api.get('/v1/api-keys')).toEqual({ items: [] });
    const again = await renter.api.request('DELETE', `/v1/api-keys/${key.id}`);
    expect(again).toMatchObject({ status: 404, body: { code: 'API_KEY_NOT_FOUND' } });
  });

  it('do what API rule 13 allows them and nothing else', async () => {
    const { secret } = await renter.api.post<KeyAnswer>('/v1/api-keys', { name: 'script', kind: 'team' });
    const script = test.api.as(secret);
    for (const path of [
      '/v1/offers',
      '/v1/catalog/status',
      '/v1/templates',
      '/v1/instances',
      '/v1/api-keys',
      '/v1/orgs/current',
    ]) {
      expect((await script.request('GET', path)).status, path).toBe(200);
    }
    for (const [method, path] of [
      ['GET', '/v1/me'],
      ['GET', '/v1/ssh-keys'],
      ['POST', '/v1/ssh-keys'],
    ] as const) {
      expect(await script.request(method, path), path).toMatchObject({ status: 401, body: { code: 'TOKEN_INVALID' } });
    }
    for (const [method, path] of [
      ['POST', '/v1/api-keys'],
      ['DELETE', '/v1/api-keys/x'],
    ] as const) {
      expect(await script.request(method, path), path).toMatchObject({ status: 403, body: { code: 'ADMIN_REQUIRED' } });
    }
    const other = await test.renter(0);
    const mismatch = await script.request('GET', '/v1/me', undefined, { 'X-Org-Id': other.organizationId });
    expect(mismatch).toMatchObject({ status: 403, body: { code: 'ORG_MISMATCH' } });
  });
});

describe('SSH keys', () => {
  it.each([
    ['ed25519', ['-t', 'ed25519']],
    ['ecdsa', ['-t', 'ecdsa', '-b', '384']],
    ['rsa', ['-t', 'rsa', '-b', '2048']],
  ])('of type %s are taken, shown by fingerprint, and removed', async (_, options) => {
    const public_key = makePublicKey(...options);
    const key = await renter.api.post<{ id: string; fingerprint: string }>('/v1/ssh-keys', {
      name: 'laptop',
      public_key,
    });
    expect(key.fingerprint).toMatch(/^SHA256:[A-Za-z0-9+/]{43}$/);
    const again = await renter.api.request('POST', '/v1/ssh-keys', { name: 'again', public_key });
    expect(again).toMatchObject({ status: 409, body: { code: 'SSH_KEY_EXISTS' } });
    expect((await renter.api.request('DELETE', `/v1/ssh-keys/${key.id}`)).status).toBe(204);
    expect(await renter.api.get('/v1/ssh-keys')).toEqual({ items: [] });
  });

  it.each([
    ['ssh-rsa of 1024 bits', () => makePublicKey('-t', 'rsa', '-b', '1024'), '2048'],
    ['text', () => 'hello', 'public key'],
    ['two lines', () => `${makePublicKey('-t', 'ed25519')}\nssh-rsa AAAA`, 'one line'],
    ['a cut key', () => makePublicKey('-t', 'ed25519').slice(0, 48), 'read'],
    ['an option before the key', () => `command="sh" ${makePublicKey('-t', 'ed25519')}`, 'public key'],
    ['a private key', () => makeKeyPair('-t', 'ed25519').privateKey, 'Consider it exposed'],
    ['one without its first line', () => makeKeyPair('-t', 'ed25519').privateKey.split('\n')[1] ?? '', 'private key'],
    ['one with a passphrase', () => makeKeyPair('-t', 'ed25519', '-N', 'secret').privateKey, 'private key'],
    ['one in PEM', () => makeKeyPair('-t', 'rsa', '-b', '2048', '-m', 'PEM').privateKey, 'private key'],
    ['one in PKCS 8', () => makeKeyPair('-t', 'ecdsa', '-m', 'PKCS8').privateKey, 'private key'],
    ['one on one line', () => makeKeyPair('-t', 'ed25519').privateKey.replaceAll('\n', ' '), 'private key'],
    ['one of PuTTY', () => `PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: c`, 'private key'],
    ['one of ssh.com', () => '---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: c', 'private key'],
  ])('refuse %s with the reason', async (_, make, reason) => {
    const text = make();
    const before = test.dump();
    const answer = await renter.api.request<{ message: string }>('POST', '/v1/ssh-keys', {
      name: 'k',
      public_key: text,
    });
    expect(answer).toMatchObject({ status: 422, body: { code: 'VALIDATION_FAILED' } });
    expect(answer.body.message).toContain(reason);
    // The command line and the console never send what the API would refuse as private.
    expect(isPrivateKey(text)).toBe(answer.body.message.includes('private key'));
    expect(JSON.stringify([answer.body, test.logged(0)])).not.toContain(text.trim().slice(-40));
    expect(test.dump()).toEqual(before);
  });
});

describe('requests that are not right', () => {
  it.each([
    ['POST', '/v1/auth/sign-up', '{bad', 400, 'MALFORMED_JSON'],
    ['POST', '/v1/auth/sign-up', { email: 'x' }, 422, 'VALIDATION_FAILED'],
    ['POST', '/v1/auth/sign-up', 'x'.repeat(2_000_000), 413, 'PAYLOAD_TOO_LARGE'],
    ['PUT', '/v1/auth/sign-up', undefined, 405, 'METHOD_NOT_ALLOWED'],
    ['GET', '/v1/nothing', undefined, 404, 'NOT_FOUND'],
    ['GET', '/v1/instances', undefined, 401, 'TOKEN_INVALID'],
    ['GET', '/v1/operator/machines', undefined, 401, 'TOKEN_INVALID'],
    ['GET', '/v1/operator/nothing', undefined, 401, 'TOKEN_INVALID'],
    ['GET', '/v1/operators', undefined, 404, 'NOT_FOUND'],
  ])('%s %s is answered with one clear error', async (method, path, body, status, code) => {
    const answer = await test.api.request<Record<string, string>>(method, path, body);
    expect(answer).toMatchObject({ status, body: { code } });
    expect(answer.body['message']).not.toBe('');
    expect(answer.headers.get('x-request-id')).toBe(answer.body['request_id']);
  });

  it.each([
    [
      { name: 'x', nmae: 'x' },
      { path: 'nmae', message: 'this field is unknown' },
    ],
    [{}, { path: 'name', message: 'this field is required' }],
  ])('name the field: %j', async (body, detail) => {
    const answer = await renter.api.request('POST', '/v1/api-keys', body);
    expect(answer.body).toMatchObject({ code: 'VALIDATION_FAILED', details: [detail] });
  });

  it('are fine without a body, whatever the content type says', async () => {
    for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded']) {
      const answer = await renter.api.request('POST', '/v1/instances/x/stop', '', { 'Content-Type': type });
      expect(answer, type).toMatchObject({ status: 404, body: { code: 'INSTANCE_NOT_FOUND' } });
    }
  });

  it('to an address that cannot be read are answered as to one that is none', async () => {
    const answer = await renter.api.request<Record<string, string>>('GET', '/v1/instances/%ff');
    expect(answer).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
    expect(answer.headers.get('x-request-id')).toBe(answer.body['request_id']);
    const long = await renter.api.request('GET', `/v1/instances/${'x'.repeat(500)}`);
    expect(long).toMatchObject({ status: 404, body: { code: 'INSTANCE_NOT_FOUND' } });
  });

  it('take a body of another type for what it is', async () => {
    const answer = await renter.api.request('POST', '/v1/api-keys', 'name=x', { 'Content-Type': 'text/plain' });
    expect(answer).toMatchObject({ status: 415, body: { code: 'UNSUPPORTED_MEDIA_TYPE' } });
  });

  it('show operators’ routes to operators alone', async () => {
    const foreign = await renter.api.request('GET', '/v1/operator/machines');
    const nowhere = await renter.api.request('GET', '/v1/operator/nothing');
    expect(foreign).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
    expect({ ...(foreign.body as object), request_id: '' }).toEqual({ ...(nowhere.body as object), request_id: '' });
    expect((await test.operator.request('GET', '/v1/operator/machines')).status).toBe(200);
  });
});

it('a session ends thirty days after its last use', async () => {
  const { token } = await test.api.post<{ token: string }>('/v1/auth/sign-in', {
    email: renter.email,
    password: 'a renter password',
  });
  test.clock.advance(29 * 86_400_000);
  expect((await test.api.as(token).request('GET', '/v1/me')).status).toBe(200);
  test.clock.advance(29 * 86_400_000);
  expect((await test.api.as(token).request('GET', '/v1/me')).status).toBe(200);
  test.clock.advance(31 * 86_400_000);
  expect((await test.api.as(token).request('GET', '/v1/me')).status).toBe(401);
});

it('a sign-in that is under way does not outlive a password that is changed meanwhile', async () => {
  const { api, email } = await test.renter(0);
  const [old, changed] = ['a renter password', 'a new renter password'];
  const signIns = Array.from({ length: 4 }, () =>
    test.api.request<{ token: string }>('POST', '/v1/auth/sign-in', { email, password: old }),
  );
  await api.request('POST', '/v1/auth/password', { current_password: old, new_password: changed });
  for (const { status, body } of await Promise.all(signIns)) {
    if (status === 200) expect((await test.api.as(body.token).request('GET', '/v1/me')).status).toBe(401);
  }
});
