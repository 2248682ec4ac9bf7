import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import { shownCode, typedCode, userCodeFrom } from '../../control-plane/domain/identity/device-code.js';
import { query } from '../../control-plane/store/sql.js';
import type { ApiClient } from '../harness/api-client.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import { failEachStatement } from '../harness/failing-statements.js';
import { mailsAreSettled, mailsOf } from '../harness/mails.js';
import { addApp } from '../harness/second-factors.js';
import { TestSmtp } from '../harness/smtp.js';

const PASSWORD = 'a renter password';
const NAME = 'gpurent on laptop';
const PROGRAM = { 'X-Forwarded-For': '203.0.113.9', 'User-Agent': 'curl/8.5' };

interface Codes {
  device_code: string;
  user_code: string;
  verification_uri: string;
  expires_in: number;
  interval: number;
}

interface Answer {
  code?: string;
  id: string;
  token: string;
  name: string;
  interval?: number;
}

let test: TestControlPlane;
let renter: Renter;
let restore: () => void;
beforeAll(async () => {
  test = await TestControlPlane.start();
  await test.restart({ publicUrl: 'https://gpus.example' });
  restore = test.snapshot();
});
afterAll(() => test.stop());
beforeEach(async () => {
  restore();
  renter = await test.renter(0);
});

async function begin(headers: Record<string, string> = PROGRAM): Promise<Codes> {
  const { status, body } = await test.api.request<Codes>('POST', '/v1/auth/device', { name: NAME }, headers);
  expect(status).toBe(201);
  return body;
}

/** The program asks, after it has waited for as long as it should. */
async function poll({ device_code }: Codes, waitMs = 5_000) {
  test.clock.advance(waitMs);
  return test.api.request<Answer>('POST', '/v1/auth/device/token', { device_code }, PROGRAM);
}

const refused = (code: string) => ({ status: 400, body: { code } });

const type = (user_code: string, api: ApiClient = renter.api) =>
  api.request<Answer>('POST', '/v1/me/device-codes', { user_code });
const approve = (id: string, api: ApiClient = renter.api) =>
  api.request<Answer>('POST', `/v1/me/device-codes/${id}/approve`);
const deny = (id: string, api: ApiClient = renter.api) => api.request<Answer>('POST', `/v1/me/device-codes/${id}/deny`);
const typedId = async ({ user_code }: Codes) => (await type(user_code)).body.id;
const INVALID = { status: 404, body: { code: 'DEVICE_CODE_INVALID' } };

describe('a program signs in', () => {
  it('once a person has typed its code and approved it, with a session of its name, once', async () => {
    const codes = await begin();
    expect(codes).toEqual({
      device_code: expect.stringMatching(/^dev_[0-9a-f]{64}$/) as string,
      user_code: expect.stringMatching(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/) as string,
      verification_uri: 'https://gpus.example/device',
      expires_in: 600,
      interval: 5,
    });
    expect(await poll(codes)).toMatchObject(refused('AUTHORIZATION_PENDING'));
    const asked = await type(codes.user_code.toLowerCase().replace('-', ' '));
    expect(asked).toMatchObject({
      status: 200,
      body: { name: NAME, device: 'curl', address: '203.0.113.9', is_same_address: false },
    });
    expect(await poll(codes)).toMatchObject(refused('AUTHORIZATION_PENDING'));
    expect((await approve(asked.body.id)).status).toBe(204);
    const { status, body } = await poll(codes);
    expect(status).toBe(200);
    const program = test.api.as(body.token);
    expect(await program.get('/v1/me')).toMatchObject({ user: { email: renter.email } });
    expect(await poll(codes)).toMatchObject(refused('EXPIRED_TOKEN'));
    const { items } = await renter.api.get<{ items: Answer[] }>('/v1/auth/sessions');
    // It has used the session from elsewhere since.
    expect(items[0]).toMatchObject({ name: NAME, device: 'curl', address: '127.0.0.1', is_current: false });
    expect(items[1]?.name).toBeNull();
    await renter.api.delete(`/v1/auth/sessions/${items[0]?.id}`);
    expect((await program.request('GET', '/v1/me')).status).toBe(401);
  });

  it('not once it was denied', async () => {
    const codes = await begin();
    const id = await typedId(codes);
    expect((await deny(id)).status).toBe(204);
    expect(await poll(codes)).toMatchObject(refused('ACCESS_DENIED'));
    for (const again of [approve(id), deny(id), type(codes.user_code)]) expect(await again).toMatchObject(INVALID);
  });

  it('not after ten minutes, and nothing of it stays', async () => {
    const codes = await begin();
    const id = await typedId(codes);
    test.clock.advance(10 * MINUTE_MS);
    expect(await approve(id)).toMatchObject(INVALID);
    expect(await type(codes.user_code)).toMatchObject(INVALID);
    expect(await poll(codes)).toMatchObject(refused('EXPIRED_TOKEN'));
    const approved = await begin();
    await approve(await typedId(approved));
    expect(await poll(approved, 10 * MINUTE_MS)).toMatchObject(refused('EXPIRED_TOKEN'));
    test.advance(11 * MINUTE_MS);
    for (const table of ['device_codes', 'device_code_guesses'] as const)
      expect(test.core.platform.store.transact((tx) => tx.all(query.selectFrom(table).select('id')))).toEqual([]);
  });

  it('more slowly, if it asks too often', async () => {
    const codes = await begin();
    const slower = (interval: number) => ({ status: 400, body: { code: 'SLOW_DOWN', interval } });
    expect(await poll(codes, 0)).toMatchObject(refused('AUTHORIZATION_PENDING'));
    const before = test.dump();
    expect(await poll(codes, 3_000)).toMatchObject(slower(10));
    expect(await poll(codes, 5_000)).toMatchObject(slower(15));
    expect(test.dump()).toEqual(before);
    await approve(await typedId(codes));
    expect(await poll(codes, 5_000)).toMatchObject(slower(20));
    expect((await poll(codes, 20_000)).status).toBe(200);
  });

  it('after the control plane was killed between the approval and the token', async () => {
    const codes = await begin();
    await approve(await typedId(codes));
    await test.restart();
    expect((await poll(codes)).status).toBe(200);
    await test.restart();
    expect(await poll(codes)).toMatchObject(refused('EXPIRED_TOKEN'));
  });

  it('only while the session lasts in which that was approved', async () => {
    for (const end of [
      () => renter.api.request('POST', '/v1/auth/sign-out'),
      () => test.operator.request('DELETE', `/v1/operator/users/${renter.userId}`),
    ]) {
      renter = await test.renter(0);
      const codes = await begin();
      await approve(await typedId(codes));
      expect((await end()).status).toBe(204);
      expect(await poll(codes)).toMatchObject(refused('ACCESS_DENIED'));
    }
  });

  it.each([
    [
      'the password',
      'POST',
      '/v1/auth/password',
      { current_password: PASSWORD, new_password: 'another fine password' },
    ],
    ['the other sessions', 'DELETE', '/v1/auth/sessions', undefined],
  ])(
    'not after a change of %s, although the session lasts in which that was approved',
    async (_, method, path, body) => {
      const codes = await begin();
      await approve(await typedId(codes));
      expect((await renter.api.request(method, path, body)).status).toBeLessThan(300);
      expect(await poll(codes)).toMatchObject(refused('EXPIRED_TOKEN'));
      expect((await renter.api.request('GET', '/v1/me')).status).toBe(200);
    },
  );

  it('from a network that its user has not used yet, and the user is told by mail', async () => {
    const smtp = await TestSmtp.start();
    const mailing = await TestControlPlane.start({ mail: smtp.settings });
    const { api, email } = await mailing.renter(0);
    const asked = await mailing.api.post<Codes>('/v1/auth/device', { name: NAME });
    const { id } = await api.post<Answer>('/v1/me/device-codes', { user_code: asked.user_code });
    await api.request('POST', `/v1/me/device-codes/${id}/approve`);
    const { device_code } = asked;
    await mailing.api.request('POST', '/v1/auth/device/token', { device_code }, PROGRAM);
    expect(mailsOf(mailing)).toMatchObject([{ kind: 'sign_in', address: email }]);
    await mailsAreSettled(mailing);
    await mailing.stop();
    await smtp.stop();
  });

  it('once, if it asks twice at once', async () => {
    const codes = await begin();
    await approve(await typedId(codes));
    const answers = await Promise.all([poll(codes, 0), poll(codes, 30_000)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400]);
  });
});

describe('a code', () => {
  it('is the business of the session in which it was typed', async () => {
    const codes = await begin();
    const id = await typedId(codes);
    const other = await test.renter(0);
    const { token } = await test.api.post<Answer>('/v1/auth/sign-in', { email: renter.email, password: PASSWORD });
    const elsewhere = test.api.as(token);
    for (const api of [other.api, elsewhere])
      for (const answer of [approve(id, api), deny(id, api)]) expect(await answer).toMatchObject(INVALID);
    // Who types it second, as another user, is told what everybody is told whose code is wrong.
    expect(await type(codes.user_code, other.api)).toMatchObject(INVALID);
    expect((await type(codes.user_code, elsewhere)).status).toBe(200);
    expect(await approve(id)).toMatchObject(INVALID);
    expect((await approve(id, elsewhere)).status).toBe(204);
  });

  it('that is typed takes the place of the one before it', async () => {
    const [first, second] = [await begin(), await begin()];
    const [one, other] = [await typedId(first), await typedId(second)];
    expect(await approve(one)).toMatchObject(INVALID);
    expect((await approve(other)).status).toBe(204);
    expect(await poll(first)).toMatchObject(refused('AUTHORIZATION_PENDING'));
  });

  it('is approved within 15 minutes after a proof, and by no program that has signed in by a code', async () => {
    const first = await begin();
    await approve(await typedId(first));
    const program = test.api.as((await poll(first)).body.token);
    const second = await begin();
    const { id } = (await type(second.user_code, program)).body;
    const unproven = { status: 403, body: { code: 'PROOF_REQUIRED' } };
    expect(await approve(id, program)).toMatchObject(unproven);
    test.clock.advance(15 * MINUTE_MS);
    const third = await begin();
    const typed = await typedId(third);
    expect(await approve(typed)).toMatchObject(unproven);
    expect(await poll(third)).toMatchObject(refused('AUTHORIZATION_PENDING'));
    await renter.api.post('/v1/me/proof', { password: PASSWORD });
    expect((await approve(typed)).status).toBe(204);
  });

  it('gives a session with a second factor if one was given where it was approved', async () => {
    const given = async () => {
      const codes = await begin();
      await approve(await typedId(codes));
      const program = test.api.as((await poll(codes)).body.token);
      return (await program.request('GET', '/v1/orgs/current')).status;
    };
    const required = query.updateTable('organizations').set({ second_factor_since: test.clock.now() });
    test.core.platform.store.transact((tx) => tx.run(required.where('id', '=', renter.organizationId)));
    expect(await given()).toBe(403);
    await addApp(test, renter.api);
    expect(await given()).toBe(200);
  });

  it('can be guessed five times by a user, also after a restart', async () => {
    const wrong = async (api = renter.api) => type('BCDF-GHJK', api);
    for (const none of ['', 'BCDF', 'ABCD-EFGH', '‮']) expect(await type(none)).toMatchObject(INVALID);
    for (let count = 0; count < 5; count++) expect(await wrong()).toMatchObject(INVALID);
    const codes = await begin();
    await test.restart();
    const refused = await type(codes.user_code);
    expect(refused).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED', retry_after_seconds: 600 } });
    const other = await test.renter(0);
    expect((await type(codes.user_code, other.api)).status).toBe(200);
    test.clock.advance(10 * MINUTE_MS);
    expect(await wrong()).toMatchObject(INVALID);
  });

  it('can be guessed a thousand times by all users together', async () => {
    const rows = Array.from({ length: 999 }, (_, index) => ({
      id: `guess-${index}`,
      user_id: `user-${index}`,
      expires_at: test.clock.now() + MINUTE_MS,
    }));
    test.core.platform.store.transact((tx) => tx.run(query.insertInto('device_code_guesses').values(rows)));
    expect(await type('BCDF-GHJK')).toMatchObject(INVALID);
    const codes = await begin();
    const other = await test.renter(0);
    expect((await type(codes.user_code, other.api)).status).toBe(429);
    test.clock.advance(MINUTE_MS);
    expect((await type(codes.user_code, other.api)).status).toBe(200);
  });

  it('is one of twenty of a network, and of a thousand of all', async () => {
    for (let count = 0; count < 20; count++) await begin();
    const before = test.dump();
    const ask = (headers = PROGRAM) => test.api.request<Answer>('POST', '/v1/auth/device', { name: NAME }, headers);
    expect(await ask()).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED', retry_after_seconds: 60 } });
    expect(test.dump()).toEqual(before);
    const rows = Array.from({ length: 979 }, (_, index) => ({
      id: `code-${index}`,
      device_hash: `${index}`,
      user_hash: Buffer.from(`${index}`),
      name: NAME,
      network: `network-${index}`,
      device: null,
      state: 'pending' as const,
      user_id: null,
      session_id: null,
      created_at: test.clock.now(),
      expires_at: test.clock.now() + 10 * MINUTE_MS,
    }));
    test.core.platform.store.transact((tx) => tx.run(query.insertInto('device_codes').values(rows)));
    const elsewhere = { ...PROGRAM, 'X-Forwarded-For': '192.0.2.10' };
    await begin(elsewhere);
    expect((await ask(elsewhere)).status).toBe(429);
    test.clock.advance(10 * MINUTE_MS);
    expect((await ask()).status).toBe(201);
  });

  it('is still given to others once few networks have half of all', async () => {
    const rows = Array.from({ length: 500 }, (_, index) => ({
      id: `code-${index}`,
      device_hash: `${index}`,
      user_hash: Buffer.from(`${index}`),
      name: NAME,
      network: `192.0.2.${index % 26}`,
      device: null,
      state: 'pending' as const,
      user_id: null,
      session_id: null,
      created_at: test.clock.now(),
      expires_at: test.clock.now() + 10 * MINUTE_MS,
    }));
    test.core.platform.store.transact((tx) => tx.run(query.insertInto('device_codes').values(rows)));
    const askAt = async (address: string) => {
      const headers = { ...PROGRAM, 'X-Forwarded-For': address };
      return (await test.api.request<Answer>('POST', '/v1/auth/device', { name: NAME }, headers)).status;
    };
    expect(await askAt('192.0.3.3')).toBe(429);
    expect(await askAt('198.18.0.1')).toBe(201);
    expect(await askAt('198.18.0.2')).toBe(429);
  });

  it('can be typed by others once the accounts of one network have typed half of all wrong ones', async () => {
    const rows = Array.from({ length: 500 }, (_, index) => ({
      id: `guess-${index}`,
      user_id: `user-${index % 100}`,
      network: '192.0.2.1',
      expires_at: test.clock.now() + 10 * MINUTE_MS,
    }));
    test.core.platform.store.transact((tx) => tx.run(query.insertInto('device_code_guesses').values(rows)));
    const typeAt = async (address: string) => {
      const body = { user_code: 'BCDF-GHJK' };
      const headers = { 'X-Forwarded-For': address };
      return (await renter.api.request('POST', '/v1/me/device-codes', body, headers)).status;
    };
    const { status: wrong } = await type('BCDF-GHJK');
    expect(await typeAt('192.0.9.9')).toBe(429);
    expect((await type('BCDF-GHJK')).status).toBe(429);
    const other = await test.renter(0);
    expect(
      (
        await other.api.request(
          'POST',
          '/v1/me/device-codes',
          { user_code: 'BCDF-GHJK' },
          { 'X-Forwarded-For': '198.18.0.1' },
        )
      ).status,
    ).toBe(wrong);
  });

  it('is in the database only as a hash', async () => {
    const { device_code, user_code } = await begin();
    const stored = test.everythingStored();
    for (const secret of [device_code, user_code, user_code.replace('-', '')]) expect(stored).not.toContain(secret);
  });

  it('has letters that are as likely, and is read as people type it', () => {
    expect(userCodeFrom('0'.repeat(32))).toBe('BBBBBBBB');
    expect(userCodeFrom((20n ** 8n - 1n).toString(16))).toBe('ZZZZZZZZ');
    expect(userCodeFrom((20n ** 8n).toString(16))).toBe('BBBBBBBB');
    expect(shownCode('BCDFGHJK')).toBe('BCDF-GHJK');
    for (const typed of ['BCDF-GHJK', 'bcdfghjk', ' bcdf ghjk ', 'b-c-d-f-g-h-j-k'])
      expect(typedCode(typed)).toBe('BCDFGHJK');
    for (const typed of ['', 'BCDF', 'BCDF-GHJKL', 'ABCD-EFGH', 'BCDF–GHJK', '1CDF-GHJK'])
      expect(typedCode(typed)).toBeUndefined();
  });
});

it.each(['', ' x', 'x\ny', 'a‮b', '<b>', 'Your bank: approve!', 'x'.repeat(49)])(
  'a program cannot call itself %j',
  async (name) => {
    expect((await test.api.request('POST', '/v1/auth/device', { name })).status).toBe(422);
  },
);

it('whatever statement fails, nothing of it has happened, and it can be done again', async () => {
  const { api } = test;
  const step = (of: ApiClient, path: string, body?: object, undo?: () => void) =>
    failEachStatement(test, { api: of, method: 'POST', path, body }, { undo });
  await step(api, '/v1/auth/device', { name: NAME });
  const [approved, denied] = [await begin(), await begin()];
  await step(renter.api, '/v1/me/device-codes', { user_code: denied.user_code });
  await step(renter.api, `/v1/me/device-codes/${await typedId(denied)}/deny`);
  const path = `/v1/me/device-codes/${await typedId(approved)}/approve`;
  await step(renter.api, path);
  // Each question comes later than the one before.
  await step(api, '/v1/auth/device/token', { device_code: approved.device_code }, () => test.clock.advance(60_000 / 4));
});
