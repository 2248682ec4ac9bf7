import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { HOUR_MS, MINUTE_MS } from '../../shared/time.js';
import { forgetTotpSecrets } from '../../control-plane/services/identity/factors/second-factors.js';
import { Encryption } from '../../control-plane/services/secrets/encryption.js';
import { reencrypt } from '../../control-plane/services/secrets/key-rotation.js';
import { query } from '../../control-plane/store/sql.js';
import type { ApiClient } from '../harness/api-client.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import { addApp, codeAt, nextCode, type App } from '../harness/second-factors.js';

const PASSWORD = 'a renter password';

let test: TestControlPlane;
let renter: Renter;
let app: App;

beforeAll(async () => {
  test = await TestControlPlane.start();
});
beforeEach(async () => {
  renter = await test.renter(0);
  app = await addApp(test, renter.api);
});
afterEach(async () => {
  test.clock.advance(HOUR_MS);
  await test.signInOperator();
});
afterAll(() => test.stop());

interface Answer {
  code?: string;
  message?: string;
  factor_token?: string;
  factors?: string[];
  token?: string;
  retry_after_seconds?: number;
}

const post = (path: string, body: object, api: ApiClient = test.api) => api.request<Answer>('POST', path, body);
const signIn = (password = PASSWORD, email = renter.email) => post('/v1/auth/sign-in', { email, password });
const give = (factor_token: string, answer: object) => post('/v1/auth/second-factor', { factor_token, ...answer });
const refusal = (status: number, code: string) => ({ status, body: { code } });

async function factorToken(): Promise<string> {
  const { status, body } = await signIn();
  expect([status, body.code]).toEqual([403, 'SECOND_FACTOR_REQUIRED']);
  return body.factor_token ?? '';
}

/** A code that the app shows neither now nor a step before or after. */
function wrongCode(): string {
  const near = [-30_000, 0, 30_000].map((ms) => codeAt(app.secret, test.clock.now() + ms));
  return ['000000', '111111', '222222', '333333'].find((code) => !near.includes(code)) ?? '';
}

describe('a sign-in with a second factor', () => {
  it('opens a session after the password and a code', async () => {
    const { body } = await signIn();
    expect(body.factors).toEqual(['totp']);
    expect(body.factor_token).toMatch(/^fac_[0-9a-f]{64}$/);
    const { status, body: session } = await give(body.factor_token ?? '', { code: nextCode(test, app) });
    expect(status).toBe(200);
    expect((await test.api.as(session.token ?? '').request('GET', '/v1/me')).status).toBe(200);
  });

  it('tells nobody of the factor who does not have the password', async () => {
    const other = await test.renter(0);
    const [withFactor, without, nobody] = [
      await signIn('a wrong password'),
      await signIn('a wrong password', other.email),
      await signIn('a wrong password', 'nobody@example.com'),
    ];
    for (const answer of [withFactor, without, nobody])
      expect([answer.status, { ...answer.body, request_id: '' }]).toEqual([
        401,
        { ...nobody.body, request_id: '', code: 'INVALID_CREDENTIALS' },
      ]);
  });

  it('takes a code once, and none before it', async () => {
    const first = nextCode(test, app);
    expect((await give(await factorToken(), { code: first })).status).toBe(200);
    expect(await give(await factorToken(), { code: first })).toMatchObject(refusal(401, 'FACTOR_INVALID'));
    const earlier = codeAt(app.secret, test.clock.now() - 30_000);
    expect(await give(await factorToken(), { code: earlier })).toMatchObject(refusal(401, 'FACTOR_INVALID'));
    const later = codeAt(app.secret, test.clock.now() + 30_000);
    expect((await give(await factorToken(), { code: later })).status).toBe(200);
    // The code of now comes before the one that was used.
    expect(await give(await factorToken(), { code: codeAt(app.secret, test.clock.now()) })).toMatchObject(
      refusal(401, 'FACTOR_INVALID'),
    );
    const token = await factorToken();
    const code = nextCode(test, { secret: app.secret });
    test.clock.advance(61_000);
    expect(await give(token, { code })).toMatchObject(refusal(401, 'FACTOR_INVALID'));
  });

  it('opens one session for two answers at once', async () => {
    const [one, other] = [await factorToken(), await factorToken()];
    const code = nextCode(test, app);
    const answers = await Promise.all([give(one, { code }), give(one, { code }), give(other, { code })]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401]);
  });

  it('takes a token once, for five answers and ten minutes', async () => {
    const used = await factorToken();
    expect((await give(used, { code: nextCode(test, app) })).status).toBe(200);
    const over = refusal(401, 'FACTOR_TOKEN_INVALID');
    expect(await give(used, { code: nextCode(test, app) })).toMatchObject(over);
    const guessed = await factorToken();
    for (let count = 0; count < 5; count++)
      expect(await give(guessed, { code: wrongCode() })).toMatchObject(refusal(401, 'FACTOR_INVALID'));
    expect(await give(guessed, { code: nextCode(test, app) })).toMatchObject(over);
    const late = await factorToken();
    test.clock.advance(10 * MINUTE_MS);
    expect(await give(late, { code: codeAt(app.secret, test.clock.now()) })).toMatchObject(over);
    expect(await give('fac_0', { code: '000000' })).toMatchObject(over);
    expect(await give(renter.api.token ?? '', { code: '000000' })).toMatchObject(over);
    test.advance(MINUTE_MS + 1);
    expect(test.dump()['factor_requests']).toMatch(/^0 rows/);
  });

  it('takes twenty wrong codes an hour, whatever number of sign-ins they are of', async () => {
    for (let count = 0; count < 20; count++) {
      const token = await factorToken();
      expect(await give(token, { code: wrongCode() })).toMatchObject(refusal(401, 'FACTOR_INVALID'));
    }
    const refused = await give(await factorToken(), { code: nextCode(test, app) });
    expect(refused).toMatchObject(refusal(429, 'RATE_LIMITED'));
    expect(refused.body.retry_after_seconds).toBeGreaterThan(3_000);
    expect(await give(await factorToken(), { recovery_code: app.recoveryCodes[0] ?? '' })).toMatchObject(
      refusal(429, 'RATE_LIMITED'),
    );
    test.advance(HOUR_MS);
    expect((await give(await factorToken(), { code: nextCode(test, app) })).status).toBe(200);
  });

  it('keeps at most ten tokens of a user', async () => {
    const tokens = [];
    for (let count = 0; count < 11; count++) {
      tokens.push(await factorToken());
      test.clock.advance(1);
    }
    const code = nextCode(test, app);
    expect(await give(tokens[0] ?? '', { code })).toMatchObject(refusal(401, 'FACTOR_TOKEN_INVALID'));
    expect((await give(tokens[1] ?? '', { code })).status).toBe(200);
  });

  it('ends with a changed password', async () => {
    const token = await factorToken();
    const changed = { current_password: PASSWORD, new_password: 'another fine password' };
    expect((await post('/v1/auth/password', changed, renter.api)).status).toBe(204);
    expect(await give(token, { code: nextCode(test, app) })).toMatchObject(refusal(401, 'FACTOR_TOKEN_INVALID'));
  });

  it('is still asked for after a reset of the password', async () => {
    const { token } = await test.operator.post<{ token: string }>(
      `/v1/operator/users/${renter.userId}/password-reset`,
      { reason: 'x' },
    );
    await post('/v1/auth/password-reset/confirm', { token, new_password: 'another fine password' });
    expect(await signIn('another fine password')).toMatchObject(refusal(403, 'SECOND_FACTOR_REQUIRED'));
  });

  it('refuses an answer that is none, and a passkey where there is none', async () => {
    const token = await factorToken();
    expect(await give(token, {})).toMatchObject(refusal(401, 'FACTOR_INVALID'));
    for (const passkey of ['nonsense', '[]', '{}', '{"id":"x","response":{"clientDataJSON":"nonsense"}}'])
      expect(await give(await factorToken(), { passkey }), passkey).toMatchObject(refusal(401, 'FACTOR_INVALID'));
    expect(await post('/v1/auth/second-factor/passkey', { factor_token: token })).toMatchObject(
      refusal(404, 'FACTOR_NOT_FOUND'),
    );
  });
});

describe('recovery codes', () => {
  it('open the account once each', async () => {
    const [first = '', second = ''] = app.recoveryCodes;
    expect(app.recoveryCodes).toHaveLength(10);
    expect((await give(await factorToken(), { recovery_code: first })).status).toBe(200);
    expect(await give(await factorToken(), { recovery_code: first })).toMatchObject(refusal(401, 'FACTOR_INVALID'));
    const typed = second.toUpperCase().replaceAll('-', ' ');
    expect((await give(await factorToken(), { recovery_code: typed })).status).toBe(200);
    const { recovery_codes_left } = await renter.api.get<{ recovery_codes_left: number }>('/v1/me/second-factors');
    expect(recovery_codes_left).toBe(8);
    expect(test.everythingStored()).not.toContain(app.recoveryCodes[2]?.replaceAll('-', ''));
  });

  it('are made anew, with a fresh proof, and those before end', async () => {
    const [old = ''] = app.recoveryCodes;
    const made = await renter.api.post<{ recovery_codes: string[] }>('/v1/me/recovery-codes');
    expect(await give(await factorToken(), { recovery_code: old })).toMatchObject(refusal(401, 'FACTOR_INVALID'));
    expect((await give(await factorToken(), { recovery_code: made.recovery_codes[0] ?? '' })).status).toBe(200);
    test.clock.advance(16 * MINUTE_MS);
    expect(await post('/v1/me/recovery-codes', {}, renter.api)).toMatchObject(refusal(403, 'PROOF_REQUIRED'));
  });

  it('are none of another user', async () => {
    const other = await test.renter(0);
    const { recoveryCodes } = await addApp(test, other.api);
    expect(await give(await factorToken(), { recovery_code: recoveryCodes[0] ?? '' })).toMatchObject(
      refusal(401, 'FACTOR_INVALID'),
    );
  });
});

describe('the secret key', () => {
  it('that is lost leaves recovery codes, and no app', async () => {
    const { store, encryption } = test.core.platform;
    const other = test.snapshot();
    store.transact((tx) => forgetTotpSecrets(tx, encryption));
    expect(await give(await factorToken(), { code: nextCode(test, app) })).toMatchObject(
      refusal(401, 'FACTOR_INVALID'),
    );
    expect((await give(await factorToken(), { recovery_code: app.recoveryCodes[0] ?? '' })).status).toBe(200);
    other();
  });

  it('is replaced in every secret of an app', async () => {
    await renter.api.post('/v1/me/second-factors/totp');
    const { store, encryption } = test.core.platform;
    const restore = test.snapshot();
    const next = new Encryption(randomBytes(32));
    reencrypt(store, encryption, next);
    const sealed = store.transact((tx) =>
      (['second_factors', 'factor_requests'] as const).flatMap((table) =>
        tx.all(query.selectFrom(table).select('secret_encrypted').where('secret_encrypted', 'is not', null)),
      ),
    );
    expect(sealed.length).toBeGreaterThan(1);
    for (const { secret_encrypted } of sealed)
      expect(next.decrypt('totp.secret', secret_encrypted ?? Buffer.alloc(0))).toMatch(/^[A-Z2-7]{32}$/);
    restore();
  });
});

describe('adding a factor', () => {
  const begin = (api = renter.api) =>
    api.post<{ id: string; secret: string; uri: string }>('/v1/me/second-factors/totp');
  const confirm = (body: object, api = renter.api) =>
    post('/v1/me/second-factors/totp/confirm', { name: 'another', ...body }, api);

  it('shows its secret once, and keeps it encrypted', async () => {
    test.clock.advance(1);
    const { id, secret, uri } = await begin();
    expect(uri).toBe(
      `otpauth://totp/gpurent:${encodeURIComponent(renter.email)}?issuer=gpurent&secret=${secret}&algorithm=SHA1&digits=6&period=30`,
    );
    expect((await confirm({ id, code: codeAt(secret, test.clock.now()) })).status).toBe(201);
    expect(test.everythingStored()).not.toContain(secret);
    const { items } = await renter.api.get<{ items: object[] }>('/v1/me/second-factors');
    expect(items).toMatchObject([
      { kind: 'totp', name: 'another' },
      { kind: 'totp', name: 'phone' },
    ]);
    expect(JSON.stringify(items)).not.toContain('secret');
  });

  it('needs its right code, in the session that has begun it, within five tries', async () => {
    const { id, secret } = await begin();
    const right = () => codeAt(secret, test.clock.now());
    const session = (await give(await factorToken(), { code: nextCode(test, app) })).body.token;
    const over = refusal(401, 'FACTOR_TOKEN_INVALID');
    expect(await confirm({ id, code: right() }, test.api.as(session ?? ''))).toMatchObject(over);
    const [other] = [await test.renter(0)];
    expect(await confirm({ id, code: right() }, other.api)).toMatchObject(over);
    for (let count = 0; count < 5; count++)
      expect(await confirm({ id, code: right() === '000000' ? '111111' : '000000' })).toMatchObject(
        refusal(401, 'FACTOR_INVALID'),
      );
    expect(await confirm({ id, code: right() })).toMatchObject(over);
  });

  it('needs a fresh proof, also of a user without a factor', async () => {
    const other = await test.renter(0);
    const { id, secret } = await begin(other.api);
    test.clock.advance(15 * MINUTE_MS + 1);
    expect(await post('/v1/me/second-factors/totp', {}, other.api)).toMatchObject(refusal(403, 'PROOF_REQUIRED'));
    expect(await confirm({ id, code: codeAt(secret, test.clock.now()) }, other.api)).toMatchObject(
      refusal(401, 'FACTOR_TOKEN_INVALID'),
    );
    expect((await post('/v1/me/proof', { password: 'a wrong password' }, other.api)).status).toBe(401);
    expect((await post('/v1/me/proof', { password: PASSWORD }, other.api)).status).toBe(200);
    await addApp(test, other.api);
  });

  it('takes the proof from the other sessions, which have given none', async () => {
    const other = await test.renter(0);
    const { body } = await signIn(PASSWORD, other.email);
    const older = test.api.as(body.token ?? '');
    await addApp(test, other.api);
    expect(await post('/v1/api-keys', { name: 'k' }, older)).toMatchObject(refusal(403, 'PROOF_REQUIRED'));
    expect((await post('/v1/api-keys', { name: 'k' }, other.api)).status).toBe(201);
  });

  it('is possible ten times', async () => {
    for (let count = 1; count < 10; count++) await addApp(test, renter.api, `phone ${count}`);
    const { id, secret } = await begin();
    expect(await confirm({ id, code: codeAt(secret, test.clock.now()) })).toMatchObject({
      status: 409,
      body: {
        code: 'LIMIT_REACHED',
        limit: 10,
      },
    });
  });

  it('is for passkeys only where they work', async () => {
    await test.restart({ publicUrl: 'https://192.0.2.1' });
    expect(await post('/v1/me/second-factors/passkeys/options', {}, renter.api)).toMatchObject(
      refusal(409, 'PASSKEYS_OFF'),
    );
    await test.restart({ publicUrl: 'https://gpus.example' });
    const { body } = await renter.api.request<{ options: object }>('POST', '/v1/me/second-factors/passkeys/options');
    expect(body.options).toMatchObject({ rp: { id: 'gpus.example' }, attestation: 'none' });
  });
});

describe('removing a factor', () => {
  it('opens the account to the password again, and is told', async () => {
    test.clock.advance(16 * MINUTE_MS);
    const path = `/v1/me/second-factors/${app.id}`;
    expect(await renter.api.request('DELETE', path)).toMatchObject(refusal(403, 'PROOF_REQUIRED'));
    await renter.api.post('/v1/me/proof', { password: PASSWORD, code: nextCode(test, app) });
    const other = await test.renter(0);
    expect(await other.api.request('DELETE', path)).toMatchObject(refusal(404, 'FACTOR_NOT_FOUND'));
    expect((await renter.api.request('DELETE', path)).status).toBe(204);
    expect((await signIn()).status).toBe(200);
    expect(await renter.api.get('/v1/me/second-factors')).toMatchObject({ items: [], recovery_codes_left: 0 });
  });

  it('happens with the account', async () => {
    await test.operator.delete(`/v1/operator/users/${renter.userId}`);
    for (const table of ['second_factors', 'recovery_codes', 'factor_requests'])
      expect(test.everythingStored(), table).not.toContain(app.id);
  });
});

describe('a proof', () => {
  const prove = (body: object) => post('/v1/me/proof', body, renter.api);

  it('is the password and the factor, and lasts for 15 minutes', async () => {
    test.clock.advance(15 * MINUTE_MS + 1);
    const create = () => post('/v1/api-keys', { name: 'k' }, renter.api);
    expect(await create()).toMatchObject(refusal(403, 'PROOF_REQUIRED'));
    expect(await prove({ password: PASSWORD })).toMatchObject({
      status: 403,
      body: {
        code: 'SECOND_FACTOR_REQUIRED',
        factors: ['totp'],
      },
    });
    expect(await prove({ code: nextCode(test, app) })).toMatchObject(refusal(401, 'INVALID_CREDENTIALS'));
    expect(await prove({ password: 'wrong', code: nextCode(test, app) })).toMatchObject(
      refusal(401, 'INVALID_CREDENTIALS'),
    );
    expect(await prove({ password: PASSWORD, code: wrongCode() })).toMatchObject(refusal(401, 'FACTOR_INVALID'));
    expect(await create()).toMatchObject(refusal(403, 'PROOF_REQUIRED'));
    const code = nextCode(test, app);
    expect((await prove({ password: PASSWORD, code })).status).toBe(200);
    expect(await prove({ password: PASSWORD, code })).toMatchObject(refusal(401, 'FACTOR_INVALID'));
    expect((await create()).status).toBe(201);
    test.clock.advance(15 * MINUTE_MS);
    expect((await create()).status).toBe(201);
    test.clock.advance(1);
    expect(await create()).toMatchObject(refusal(403, 'PROOF_REQUIRED'));
  });

  it('is asked for before what is dangerous, and not from users without a factor', async () => {
    const other = await test.renter(0);
    test.clock.advance(HOUR_MS);
    const acts: [string, string, object][] = [
      ['POST', '/v1/api-keys', { name: 'k' }],
      ['POST', '/v1/auth/password', { current_password: PASSWORD, new_password: PASSWORD }],
      ['PATCH', `/v1/orgs/current/members/${renter.userId}`, { role: 'admin' }],
      ['POST', '/v1/orgs/current/invites', { email: 'a@example.com', role: 'admin' }],
      ['PUT', '/v1/orgs/current/second-factor', { required: true }],
    ];
    for (const [method, path, body] of acts)
      expect(await renter.api.request(method, path, body), path).toMatchObject(refusal(403, 'PROOF_REQUIRED'));
    const member = { email: 'b@example.com', role: 'member' };
    expect((await post('/v1/orgs/current/invites', member, renter.api)).status).toBe(201);
    for (const [method, path, body] of acts.slice(0, 4)) {
      const { status } = await other.api.request(method, path.replace(renter.userId, other.userId), body);
      expect(status, path).toBeLessThan(300);
    }
  });

  it('is asked of operators before they do what is dangerous', async () => {
    test.makeOperator(renter.userId);
    const other = await test.renter(0);
    test.clock.advance(HOUR_MS);
    const credit = { amount_micro: 1, reason: 'x' };
    for (const [method, path, body] of [
      ['POST', `/v1/operator/organizations/${other.organizationId}/credits`, credit],
      ['POST', `/v1/operator/organizations/${other.organizationId}/suspend`, { reason: 'x' }],
      ['POST', `/v1/operator/organizations/${other.organizationId}/restore`, { reason: 'x' }],
      ['POST', `/v1/operator/users/${other.userId}/password-reset`, { reason: 'x' }],
      ['POST', `/v1/operator/users/${other.userId}/end-sessions`, { reason: 'x' }],
      ['PUT', `/v1/operator/users/${other.userId}/operator`, { reason: 'x' }],
      ['DELETE', `/v1/operator/users/${other.userId}/operator`, { reason: 'x' }],
      [
        'PUT',
        '/v1/operator/issuers/acme',
        { name: 'Acme', issuer: 'https://acme.example', client_id: 'c', client_secret: 's' },
      ],
      ['PATCH', '/v1/operator/issuers/acme', { name: 'Acme' }],
      ['DELETE', '/v1/operator/issuers/acme', undefined],
      ['POST', `/v1/operator/users/${other.userId}/second-factor-removal`, { reason: 'x' }],
      ['DELETE', `/v1/operator/users/${other.userId}`, undefined],
      ['DELETE', `/v1/operator/instances/${other.userId}`, { reason: 'x' }],
      ['POST', '/v1/operator/enrollment-tokens', {}],
      ['POST', `/v1/operator/machines/${other.userId}/lost`, undefined],
      ['DELETE', `/v1/operator/machines/${other.userId}`, undefined],
      ['POST', `/v1/operator/quarantine/${other.userId}/adopt`, {}],
      ['POST', `/v1/operator/quarantine/${other.userId}/remove`, undefined],
      ['POST', '/v1/operator/clock/confirm', undefined],
      ['POST', '/v1/operator/templates', { name: 'Trojan', image: 'i:1' }],
      ['PATCH', `/v1/operator/templates/${other.userId}`, { image: 'i:1' }],
      ['DELETE', `/v1/operator/templates/${other.userId}`, undefined],
    ] as const)
      expect(await renter.api.request(method, path, body), path).toMatchObject(refusal(403, 'PROOF_REQUIRED'));
    expect((await renter.api.request('GET', '/v1/operator/users')).status).toBe(200);
  });

  it('is no passkey of somebody who has none: then only the password is one', async () => {
    const other = await test.renter(0);
    test.clock.advance(HOUR_MS);
    const claim = (given: object) => post('/v1/me/proof', given, other.api);
    for (const passkey of ['{}', '{"id":"x","response":{}}'])
      expect(await claim({ passkey })).toMatchObject(refusal(401, 'INVALID_CREDENTIALS'));
    for (const given of [{ code: '000000' }, { recovery_code: 'x' }, {}])
      expect(await claim(given)).toMatchObject(refusal(401, 'INVALID_CREDENTIALS'));
    expect(await post('/v1/me/second-factors/totp', {}, other.api)).toMatchObject(refusal(403, 'PROOF_REQUIRED'));
  });

  it('is none of API keys, which need none', async () => {
    const { secret } = await renter.api.post<{ secret: string }>('/v1/api-keys', { name: 'k' });
    test.clock.advance(HOUR_MS);
    expect((await test.api.as(secret).request('GET', '/v1/instances')).status).toBe(200);
    expect((await post('/v1/me/proof', { password: PASSWORD }, test.api.as(secret))).status).toBe(401);
  });
});
