import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { HOUR_MS } from '../../shared/time.js';
import { query } from '../../control-plane/store/sql.js';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import { failEachStatement } from '../harness/failing-statements.js';
import { mailsAreSettled } from '../harness/mails.js';
import { TestSmtp, type Received } from '../harness/smtp.js';

const PASSWORD = 'a renter password';
const NEW_PASSWORD = 'another fine password';
const WHY = { reason: 'lost the phone' };

let smtp: TestSmtp;
let test: TestControlPlane;
let renter: Renter;
let restore: () => void;

beforeAll(async () => {
  smtp = await TestSmtp.start();
  test = await TestControlPlane.start({ mail: smtp.settings, rateLimits: { attemptsPerAccount: 2 } });
  renter = await test.renter(0);
  test.advance(1_000);
  await mailsAreSettled(test);
  smtp.received.length = 0;
  restore = test.snapshot();
});
afterEach(async () => {
  await mailsAreSettled(test);
  restore();
  smtp.received.length = 0;
  test.clock.advance(2 * HOUR_MS);
});
afterAll(async () => {
  await smtp.stop();
  await test.stop();
});

interface Answer {
  code?: string;
  token?: string;
  user?: { id: string; email: string };
  organization?: { id: string; role: string };
}

const post = (path: string, body: object) => test.api.request<Answer>('POST', path, body);
const from = (address: string) => ({ 'X-Forwarded-For': address });
const signIn = (password: string) => post('/v1/auth/sign-in', { email: renter.email, password });
const ask = (email: string) => post('/v1/auth/password-reset', { email });
const signUp = (email: string, more: object = {}) =>
  post('/v1/auth/sign-up', { email, password: 'a fine password', name: 'Somebody', ...more });

/** The only mail that is sent now. */
async function mailed(): Promise<Received> {
  test.advance(1_000);
  const [received] = await smtp.gets(1);
  await mailsAreSettled(test);
  expect(smtp.received).toHaveLength(1);
  smtp.received.length = 0;
  if (!received) throw new Error('no mail');
  return received;
}

const tokenIn = ({ mail }: Received) => /\b(?:rst|new)_[0-9a-f]{64}\b/.exec(mail.text ?? '')?.[0] ?? '';

async function resetLink(): Promise<string> {
  expect((await ask(renter.email)).status).toBe(202);
  return tokenIn(await mailed());
}

describe('a forgotten password', () => {
  it('is replaced by a link, once: sessions and other links end, and the user is told', async () => {
    const [first, second] = [await resetLink(), await resetLink()];
    const { secret } = await renter.api.post<{ secret: string }>('/v1/api-keys', { name: 'k', kind: 'personal' });
    const body = { token: first, new_password: NEW_PASSWORD };
    expect((await post('/v1/auth/password-reset/confirm', body)).status).toBe(204);
    const told = await mailed();
    expect(told.mail.subject).toBe('Your password was changed');
    expect(told.to).toBe(renter.email);
    expect((await signIn(PASSWORD)).status).toBe(401);
    expect((await signIn(NEW_PASSWORD)).status).toBe(200);
    expect((await renter.api.request('GET', '/v1/me')).status).toBe(401);
    for (const token of [first, second])
      expect(await post('/v1/auth/password-reset/confirm', { token, new_password: PASSWORD })).toMatchObject({
        status: 404,
        body: { code: 'LINK_INVALID' },
      });
    expect((await test.api.as(secret).request('GET', '/v1/instances')).status).toBe(200);
  });

  it('replaced in a new network lets the user sign in there, whatever strangers have tried elsewhere', async () => {
    const attempt = (address: string, password: string) =>
      test.api.request('POST', '/v1/auth/sign-in', { email: renter.email, password }, from(address));
    for (let network = 1; network <= 41; network++) await attempt(`203.0.113.${network}`, 'wrong');
    const body = { token: await resetLink(), new_password: NEW_PASSWORD };
    expect((await attempt('198.51.100.7', PASSWORD)).body).toMatchObject({ code: 'RATE_LIMITED' });
    await test.api.request('POST', '/v1/auth/password-reset/confirm', body, from('198.51.100.7'));
    await mailed();
    expect((await attempt('198.51.100.8', NEW_PASSWORD)).body).toMatchObject({ code: 'RATE_LIMITED' });
    expect((await attempt('198.51.100.7', NEW_PASSWORD)).status).toBe(200);
    // Whoever has opened the link may be a thief: the first sign-in is told, too.
    expect((await mailed()).mail.text).toContain('198.51.100.7');
  });

  it('can take the API keys with it', async () => {
    const { secret } = await renter.api.post<{ secret: string }>('/v1/api-keys', { name: 'k', kind: 'personal' });
    const token = await resetLink();
    await post('/v1/auth/password-reset/confirm', { token, new_password: NEW_PASSWORD, revoke_api_keys: true });
    expect((await test.api.as(secret).request('GET', '/v1/instances')).status).toBe(401);
    await mailed();
  });

  it('gives strangers the same answer for every address, and three links in an hour', async () => {
    const stranger = 'stranger@example.com';
    for (let time = 0; time < 3; time++) {
      const [known, unknown] = [await ask(renter.email), await ask(stranger)];
      expect(unknown).toMatchObject({ status: known.status, body: known.body });
      await mailed();
    }
    for (const email of [renter.email, renter.email.toUpperCase(), stranger])
      expect(await ask(email)).toMatchObject({ status: 409, body: { code: 'LIMIT_REACHED', limit: 3 } });
    test.advance(HOUR_MS);
    expect((await ask(stranger)).status).toBe(202);
  });

  it('ends with an hour, and with the account', async () => {
    const late = await resetLink();
    test.advance(HOUR_MS);
    const invalid = { status: 404, body: { code: 'LINK_INVALID' } };
    const set = (token: string) => post('/v1/auth/password-reset/confirm', { token, new_password: NEW_PASSWORD });
    expect(await set(late)).toMatchObject(invalid);
    const orphaned = await resetLink();
    await test.operator.delete(`/v1/operator/users/${renter.userId}`);
    expect(await set(orphaned)).toMatchObject(invalid);
    expect(await set('rst_0')).toMatchObject(invalid);
  });

  it('is replaced by a link of an operator, too, which is audited', async () => {
    const path = `/v1/operator/users/${renter.userId}/password-reset`;
    const { token = '' } = await test.operator.post<Answer>(path, WHY);
    const { items } = await test.operator.get<{ items: { action: string; subject: string }[] }>(
      '/v1/operator/audit-log?limit=1',
    );
    expect(items).toMatchObject([{ action: 'user.password_reset', subject: renter.userId }]);
    expect(JSON.stringify(items)).not.toContain(token);
    expect(await renter.api.get('/v1/audit-log?limit=1')).toMatchObject({
      items: [{ action: 'member.password_reset', actor_kind: 'operator', ...WHY }],
    });
    expect((await post('/v1/auth/password-reset/confirm', { token, new_password: NEW_PASSWORD })).status).toBe(204);
    expect((await signIn(NEW_PASSWORD)).status).toBe(200);
    expect(await test.operator.request('POST', '/v1/operator/users/none/password-reset', WHY)).toMatchObject({
      body: { code: 'USER_NOT_FOUND' },
    });
  });

  it('is set by the link of an operator whom the command line has created without one, once', async () => {
    const email = 'first@example.com';
    const link = await test.core.createOperator(email, null);
    expect(await test.core.createOperator('second@example.com', PASSWORD)).toBeNull();
    const set = () => post('/v1/auth/password-reset/confirm', { token: link?.token, new_password: NEW_PASSWORD });
    expect((await set()).status).toBe(204);
    expect((await set()).status).toBe(404);
    const signedIn = await test.api.post<{ token: string }>('/v1/auth/sign-in', { email, password: NEW_PASSWORD });
    expect((await test.api.as(signedIn.token).request('GET', '/v1/operator/machines')).status).toBe(200);
  });

  it('cannot be set by a link of somebody who is no operator any more, and an operator’s link proves no address', async () => {
    const other = await test.renter(0);
    test.makeOperator(other.userId);
    const path = `/v1/operator/users/${renter.userId}/password-reset`;
    const verified = query.selectFrom('users').select('email_verified_at').where('id', '=', renter.userId);
    const verifiedAt = () => test.core.platform.store.transact((tx) => tx.get(verified))?.email_verified_at;
    test.core.platform.store.transact((tx) =>
      tx.run(query.updateTable('users').set({ email_verified_at: null }).where('id', '=', renter.userId)),
    );
    const [first, second] = [await other.api.post<Answer>(path, WHY), await other.api.post<Answer>(path, WHY)];
    const set = ({ token }: Answer) => post('/v1/auth/password-reset/confirm', { token, new_password: NEW_PASSWORD });
    await test.operator.delete(`/v1/operator/users/${other.userId}`);
    for (const link of [first, second])
      expect(await set(link)).toMatchObject({ status: 404, body: { code: 'LINK_INVALID' } });
    expect((await set(await test.operator.post<Answer>(path, WHY))).status).toBe(204);
    expect(verifiedAt()).toBeNull();
    await mailed();
    const token = await resetLink();
    expect((await post('/v1/auth/password-reset/confirm', { token, new_password: PASSWORD })).status).toBe(204);
    expect(verifiedAt()).toBe(test.clock.now());
    await mailed();
  });

  it('is set once by two requests at once', async () => {
    const token = await resetLink();
    const set = (new_password: string) => post('/v1/auth/password-reset/confirm', { token, new_password });
    const answers = await Promise.all([set('the first password'), set('the second password')]);
    expect(answers.map(({ status }) => status).sort()).toEqual([204, 404]);
    const won = answers[0].status === 204 ? 'the first password' : 'the second password';
    expect((await signIn(won)).status).toBe(200);
    await mailed();
  });

  it('needs no link once the password was changed: the links end, and the user is told', async () => {
    const token = await resetLink();
    const change = { current_password: PASSWORD, new_password: NEW_PASSWORD };
    expect((await renter.api.request('POST', '/v1/auth/password', change)).status).toBe(204);
    expect((await mailed()).mail.subject).toBe('Your password was changed');
    expect(await post('/v1/auth/password-reset/confirm', { token, new_password: PASSWORD })).toMatchObject({
      body: { code: 'LINK_INVALID' },
    });
  });

  it('is not set by the link of a sign-up, nor an account confirmed by a link to a password', async () => {
    const reset = await resetLink();
    await signUp('other@example.com');
    const token = tokenIn(await mailed());
    const invalid = { status: 404, body: { code: 'LINK_INVALID' } };
    expect(await post('/v1/auth/password-reset/confirm', { token, new_password: NEW_PASSWORD })).toMatchObject(invalid);
    expect(await post('/v1/auth/sign-up/confirm', { token: reset, password: PASSWORD })).toMatchObject(invalid);
  });

  it('is asked for 200 times in a minute by everybody, of which a few networks get half, and sign-ups have their own', async () => {
    const askAt = (count: number, address: string) =>
      test.api.request('POST', '/v1/auth/password-reset', { email: `stranger-${count}@example.com` }, from(address));
    for (let count = 0; count < 100; count++) expect((await askAt(count, `203.0.113.${count % 5}`)).status).toBe(202);
    for (const address of ['203.0.113.1', '203.0.7.7']) expect((await askAt(100, address)).status).toBe(429);
    for (let count = 100; count < 199; count++) expect((await askAt(count, `10.${count}.0.1`)).status).toBe(202);
    expect((await ask('stranger-199@example.com')).status).toBe(202);
    const before = test.dump();
    expect(await ask(renter.email)).toMatchObject({
      status: 429,
      body: { code: 'RATE_LIMITED', retry_after_seconds: 60 },
    });
    expect(test.dump()).toEqual(before);
    expect((await signUp('in-time@example.com')).status).toBe(202);
    test.advance(60_000);
    expect((await ask(renter.email)).status).toBe(202);
    // The worker takes 50 at a time, and comes back at once for more.
    test.advance(1_000);
    await eventually('the mails', () => smtp.received.length === 2);
  });

  it('leaves no token in the database, and is not mailed where there is no mail', async () => {
    smtp.toRecipient = () => ({ code: 451, text: 'later' });
    await ask(renter.email);
    test.advance(1_000);
    await mailsAreSettled(test);
    expect(test.everythingStored()).not.toMatch(/rst_[0-9a-f]{8}/);
    smtp.toRecipient = () => 'accept';
    test.advance(2 * 60_000);
    expect(tokenIn(await mailed())).toMatch(/^rst_/);
    const without = await TestControlPlane.start();
    const { status, body } = await without.api.request<Answer>('POST', '/v1/auth/password-reset', {
      email: 'a@b.example',
    });
    expect([status, body.code]).toEqual([409, 'MAIL_OFF']);
    await without.stop();
  });
});

describe('a sign-up, where there is mail', () => {
  const confirm = (token: string, password = 'a fine password') =>
    post('/v1/auth/sign-up/confirm', { token, password });

  it('makes the account once the address is confirmed, with the password', async () => {
    const email = 'new@example.com';
    expect(await signUp(email)).toMatchObject({ status: 202, body: { mailed: 'if_possible' } });
    expect((await post('/v1/auth/sign-in', { email, password: 'a fine password' })).status).toBe(401);
    const token = tokenIn(await mailed());
    const { status, body } = await confirm(token);
    expect([status, body.user?.email, body.organization?.role]).toEqual([201, email, 'admin']);
    const own = test.api.as(body.token);
    expect((await own.request('GET', '/v1/me')).status).toBe(200);
    expect(await own.get('/v1/audit-log')).toMatchObject({
      items: [{ action: 'organization.create', actor_name: email }],
    });
    expect(await confirm(token)).toMatchObject({ status: 404, body: { code: 'LINK_INVALID' } });
    // Who signs in from where the link was opened is not told of it.
    expect((await post('/v1/auth/sign-in', { email, password: 'a fine password' })).status).toBe(200);
    test.advance(1_000);
    expect(smtp.received).toEqual([]);
  });

  it('is of no use to whoever reads the mail and has not chosen the password', async () => {
    await signUp('victim@example.com');
    const token = tokenIn(await mailed());
    for (let time = 0; time < 5; time++)
      expect(await confirm(token, 'a guess')).toMatchObject({ status: 401, body: { code: 'INVALID_CREDENTIALS' } });
    expect(await confirm(token)).toMatchObject({ status: 404, body: { code: 'LINK_INVALID' } });
  });

  it('tells only the owner of an address that it has an account', async () => {
    const [known, unknown] = [await signUp(renter.email), await signUp('nobody@example.com')];
    expect(known).toMatchObject({ status: unknown.status, body: unknown.body });
    test.advance(1_000);
    const mails = await smtp.gets(2);
    await mailsAreSettled(test);
    const subjectTo = (to: string) => mails.find((each) => each.to === to)?.mail.subject;
    expect(subjectTo(renter.email)).toBe('You have an account already');
    expect(subjectTo('nobody@example.com')).toBe('Confirm your e-mail address');
    expect((await signIn(PASSWORD)).status).toBe(200);
    for (const email of [renter.email, 'nobody@example.com'])
      for (const expected of [202, 202, 409]) expect((await signUp(email)).status).toBe(expected);
    test.advance(1_000);
    expect((await smtp.gets(6)).length).toBe(6);
    await mailsAreSettled(test);
    // The password of somebody who has an account is kept no longer than it takes to find that out.
    const kept = query.selectFrom('link_requests').select('password_hash').where('address', '=', renter.email);
    const hashes = test.core.platform.store.transact((tx) => tx.all(kept)).map(({ password_hash }) => password_hash);
    expect(hashes).toEqual([null, null, null]);
  });

  it('is not kept from the owner of an address by strangers who sign up with it', async () => {
    const body = { email: 'mine@example.com', password: 'a fine password', name: 'Me' };
    const signUpAt = async (address: string) =>
      (await test.api.request('POST', '/v1/auth/sign-up', body, from(address))).status;
    for (let count = 0; count < 3; count++) expect(await signUpAt(`203.0.113.${count}`)).toBe(202);
    expect(await signUpAt('203.0.113.9')).toBe(409);
    for (let count = 0; count < 2; count++) expect(await signUpAt('198.18.0.1')).toBe(202);
    expect(await signUpAt('198.18.0.1')).toBe(409);
    for (let network = 1; network <= 4; network++) expect(await signUpAt(`10.${network}.0.1`)).toBe(202);
    expect(await signUpAt('198.51.100.7')).toBe(202);
    expect(await signUpAt('198.51.100.7')).toBe(409);
    // All are mailed at once: that of the owner waits for none.
    test.advance(1_000);
    await smtp.gets(10);
    expect(await signUpAt('192.0.2.1')).toBe(409);
  });

  it('joins the organization of an invitation, if that is open then', async () => {
    const email = 'invited@example.com';
    const invite = async () => {
      const made = await renter.api.post<{ token: string; invite: { id: string } }>('/v1/orgs/current/invites', {
        email,
      });
      await mailed();
      return made;
    };
    const { token: invite_token, invite: withdrawn } = await invite();
    await signUp(email, { invite_token });
    const early = tokenIn(await mailed());
    await renter.api.delete(`/v1/orgs/current/invites/${withdrawn.id}`);
    expect(await confirm(early)).toMatchObject({ status: 404, body: { code: 'INVITE_NOT_FOUND' } });
    await signUp(email, { invite_token: (await invite()).token });
    const { status, body } = await confirm(tokenIn(await mailed()));
    expect([status, body.organization]).toMatchObject([201, { id: renter.organizationId, role: 'member' }]);
  });

  it('that two links confirm makes one account', async () => {
    const email = 'twice@example.com';
    await signUp(email);
    const first = tokenIn(await mailed());
    await signUp(email);
    const answers = await Promise.all([confirm(first), confirm(tokenIn(await mailed()))]);
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 404]);
  });

  it('whatever of its statements fails, is asked for and confirmed again', async () => {
    const { api } = test;
    const body = { email: 'fails@example.com', password: 'a fine password', name: 'Somebody' };
    await failEachStatement(test, { api, method: 'POST', path: '/v1/auth/sign-up', body });
    smtp.received.length = 0;
    test.advance(1_000);
    const [received] = await smtp.gets(2);
    await mailsAreSettled(test);
    const link = { token: received ? tokenIn(received) : '', password: body.password };
    // A try counts although its request has failed: so guesses count that are made at once.
    const tries = () => {
      const none = query.updateTable('link_requests').set({ tries: 0 });
      test.core.platform.store.transact((tx) => tx.run(none));
    };
    await failEachStatement(
      test,
      { api, method: 'POST', path: '/v1/auth/sign-up/confirm', body: link },
      { undo: tries },
    );
    const path = '/v1/auth/password-reset';
    await failEachStatement(test, { api, method: 'POST', path, body: { email: renter.email } });
    test.advance(1_000);
    await smtp.gets(3);
  });

  it('leaves nothing behind after a day', async () => {
    await signUp('gone@example.com');
    const token = tokenIn(await mailed());
    test.advance(25 * HOUR_MS);
    expect(await confirm(token)).toMatchObject({ status: 404, body: { code: 'LINK_INVALID' } });
    test.advance(61_000);
    const left = query.selectFrom('link_requests').select('id');
    expect(test.core.platform.store.transact((tx) => tx.all(left))).toEqual([]);
  });
});
