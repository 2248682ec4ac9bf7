import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { HOUR_MS } from '../../shared/time.js';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import { mailsAreSettled } from '../harness/mails.js';
import { addApp, nextCode, type App } from '../harness/second-factors.js';
import { TestSmtp, type Received } from '../harness/smtp.js';

const PASSWORD = 'a renter password';
const REASON = 'lost telephone';

let smtp: TestSmtp;
let test: TestControlPlane;
let renter: Renter;
let app: App;
let restore: () => void;

beforeAll(async () => {
  smtp = await TestSmtp.start();
  test = await TestControlPlane.start({ mail: smtp.settings });
  renter = await test.renter(0);
  app = await addApp(test, renter.api);
  expect(subjectsOf(await mailed(1))).toEqual(['A second factor was added to your account']);
  restore = test.snapshot();
});
beforeEach(async () => {
  restore();
  await test.signInOperator();
});
afterAll(async () => {
  await smtp.stop();
  await test.stop();
});

/** The mails that were sent to the user meanwhile, once there are so many. */
async function mailed(count: number): Promise<Received[]> {
  test.advance(1_000);
  const own = () => smtp.received.filter(({ to }) => to === renter.email);
  await eventually(`${count} mails`, () => own().length >= count);
  await mailsAreSettled(test);
  const received = own();
  smtp.received.length = 0;
  return received;
}

const subjectsOf = (mails: Received[]) => mails.map(({ mail }) => mail.subject);

interface Removal {
  effective_at: string;
  code?: string;
}

const path = () => `/v1/operator/users/${renter.userId}/second-factor-removal`;
const ask = (reason = REASON) => test.operator.request<Removal>('POST', path(), { reason });
const pending = async () =>
  (await test.operator.get<{ items: { user_id: string }[] }>('/v1/operator/second-factor-removals')).items;
const signIn = () =>
  test.api.request<{ code?: string }>('POST', '/v1/auth/sign-in', { email: renter.email, password: PASSWORD });

async function audited(): Promise<string[]> {
  const { items } = await test.operator.get<{ items: { action: string }[] }>('/v1/operator/audit-log?limit=2');
  return items.map(({ action }) => action);
}

describe('an operator who removes the factors of a user', () => {
  it('tells the user, waits for 24 hours, and ends all sessions', async () => {
    const { status, body } = await ask();
    expect([status, Date.parse(body.effective_at)]).toEqual([201, test.clock.now() + 24 * HOUR_MS]);
    expect(await pending()).toMatchObject([{ user_id: renter.userId, reason: REASON, email: renter.email }]);
    const mails = await mailed(1);
    expect(subjectsOf(mails)).toEqual(['Your second factors will be removed']);
    expect(mails[0]?.mail.text).toContain(REASON);
    test.advance(24 * HOUR_MS - 2_000);
    expect(await signIn()).toMatchObject({ status: 403 });
    test.advance(1_000);
    expect((await signIn()).status).toBe(200);
    expect((await renter.api.request('GET', '/v1/me')).status).toBe(401);
    await test.signInOperator();
    expect(await pending()).toEqual([]);
    expect(await audited()).toEqual(['user.second_factor_removed', 'user.second_factor_removal']);
    expect(subjectsOf(await mailed(1))).toContain('A second factor was removed from your account');
    for (const table of ['second_factors', 'recovery_codes', 'factor_removals'])
      expect(test.dump()[table], table).toMatch(/^0 rows/);
  });

  it('is stopped by the user, or by an operator', async () => {
    await ask();
    expect(await renter.api.get('/v1/me/second-factors')).toMatchObject({ removal: { reason: REASON } });
    expect((await renter.api.request('DELETE', '/v1/me/second-factor-removal')).status).toBe(204);
    expect((await renter.api.request('DELETE', '/v1/me/second-factor-removal')).status).toBe(204);
    await ask();
    expect((await test.operator.request('DELETE', path())).status).toBe(204);
    expect((await test.operator.request('DELETE', path())).status).toBe(404);
    expect(subjectsOf(await mailed(2))).toEqual(Array(2).fill('Your second factors will be removed'));
    test.advance(25 * HOUR_MS);
    expect(await signIn()).toMatchObject({ status: 403, body: { code: 'SECOND_FACTOR_REQUIRED' } });
  });

  it('removes nothing who is no operator any more when the time has come', async () => {
    await ask();
    const { user } = await test.operator.get<{ user: { id: string } }>('/v1/me');
    const another = await test.renter(0);
    test.makeOperator(another.userId);
    const withdrawn = `/v1/operator/users/${user.id}/operator`;
    expect((await another.api.request('DELETE', withdrawn, { reason: 'has left' })).status).toBe(200);
    await mailed(1);
    test.advance(25 * HOUR_MS);
    expect(await signIn()).toMatchObject({ status: 403, body: { code: 'SECOND_FACTOR_REQUIRED' } });
    expect(await renter.api.get('/v1/me/second-factors')).toMatchObject({ removal: null });
    test.makeOperator(user.id);
    expect((await audited())[0]).toBe('user.second_factor_removal_cancelled');
  });

  it('gives the user 24 hours also where the clock is set', async () => {
    const { body } = await ask();
    await mailed(1);
    test.clock.step(25 * HOUR_MS);
    test.advance(1_000);
    expect(await signIn()).toMatchObject({ status: 403 });
    await test.operator.post('/v1/operator/clock/confirm');
    test.advance(22 * HOUR_MS);
    expect(await signIn()).toMatchObject({ status: 403 });
    const { removal } = await renter.api.get<{ removal: Removal }>('/v1/me/second-factors');
    expect(Date.parse(removal.effective_at)).toBe(Date.parse(body.effective_at) + 25 * HOUR_MS);
    test.advance(2 * HOUR_MS);
    expect((await signIn()).status).toBe(200);
    await mailed(1);
  });

  it('does not make it earlier or later by asking again, and needs a user who has some', async () => {
    const { body } = await ask();
    test.clock.advance(HOUR_MS);
    expect((await ask('another reason')).body.effective_at).toBe(body.effective_at);
    await test.operator.request('DELETE', path());
    const other = await test.renter(0);
    expect(
      await test.operator.request('POST', `/v1/operator/users/${other.userId}/second-factor-removal`, { reason: 'x' }),
    ).toMatchObject({ status: 404, body: { code: 'FACTOR_NOT_FOUND' } });
    test.makeOperator(renter.userId);
    await renter.api.post('/v1/me/proof', { password: PASSWORD, code: nextCode(test, app) });
    expect(await renter.api.request('POST', path(), { reason: 'x' })).toMatchObject({
      status: 409,
      body: { code: 'OWN_ACCOUNT' },
    });
  });
});
