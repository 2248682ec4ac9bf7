import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Refused } from '../contract/world.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';

const WEEK_MS = 7 * 86_400_000;

let test: TestControlPlane;
let admin: Renter;
let known: Renter;
beforeAll(async () => {
  test = await TestControlPlane.start();
  admin = await test.renter();
  known = await test.renter();
});
afterAll(() => test.stop());

let guests = 0;
const newEmail = () => `guest${++guests}@example.com`;
const signUp = (email: string, invite_token?: string) =>
  test.api.request<Refused>('POST', '/v1/auth/sign-up', {
    email,
    password: 'a fine password',
    name: 'Guest',
    ...(invite_token === undefined ? {} : { invite_token }),
  });
const invite = async (email: string, role = 'member') =>
  (await admin.api.post<{ token: string }>('/v1/orgs/current/invites', { email, role })).token;

describe.each(['open', 'invitation'] as const)('where sign-up is %s', (mode) => {
  beforeAll(() => test.restart({ signUp: mode }));

  it('who is invited joins that organization, once, and founds none', async () => {
    const email = newEmail();
    const token = await invite(email, 'admin');
    const { status, body } = await signUp(email, token);
    expect(status).toBe(201);
    expect(body).toMatchObject({ user: { email }, organization: { id: admin.organizationId, role: 'admin' } });
    const me = await test.api.as(body['token'] as string).get<{ memberships: object[] }>('/v1/me');
    expect(me.memberships).toMatchObject([{ organization_id: admin.organizationId, role: 'admin' }]);
    expect((await signUp(newEmail(), token)).body.code).toBe('INVITE_NOT_FOUND');
  });

  it('an invitation is for its address, for a week, and of no use to others', async () => {
    const email = newEmail();
    const token = await invite(email);
    const before = test.dump();
    expect((await signUp(newEmail(), token)).body.code).toBe('INVITE_NOT_FOUND');
    expect((await signUp(email, 'inv_nonsense')).body.code).toBe('INVITE_NOT_FOUND');
    expect(test.dump()).toEqual(before);
    test.clock.advance(WEEK_MS);
    expect((await signUp(email, token)).body.code).toBe('INVITE_NOT_FOUND');
  });

  it('one who has an account is told so, and the invitation stays theirs', async () => {
    const token = await invite(known.email);
    const before = test.dump();
    expect(await signUp(known.email, token)).toMatchObject({ status: 409, body: { code: 'EMAIL_TAKEN' } });
    expect(test.dump()).toEqual(before);
  });
});

describe('where sign-up is by invitation', () => {
  beforeAll(() => test.restart({ signUp: 'invitation' }));
  afterAll(() => test.restart({ signUp: 'open' }));

  it('a stranger is turned away, and learns not who has an account', async () => {
    const before = test.dump();
    const [stranger, known] = [await signUp(newEmail()), await signUp(admin.email)];
    for (const answer of [stranger, known]) {
      expect(answer).toMatchObject({ status: 403, body: { code: 'INVITATION_REQUIRED' } });
    }
    expect(known.body.message).toBe(stranger.body.message);
    expect(test.dump()).toEqual(before);
  });

  it('an operator lets a customer in: an organization, its first admin, and out of it', async () => {
    await test.signInOperator();
    const { id } = await test.operator.post<{ id: string }>('/v1/orgs', { name: 'Example Ltd' });
    const email = newEmail();
    const invitation = { email, role: 'admin' };
    const { token } = await test.operator.in(id).post<{ token: string }>('/v1/orgs/current/invites', invitation);
    expect((await signUp(email, token)).status).toBe(201);
    expect((await test.operator.request('DELETE', `/v1/me/organizations/${id}`)).status).toBe(204);
    const { items } = await test.operator.get<{ items: object[] }>(`/v1/operator/organizations/${id}/users`);
    expect(items).toMatchObject([{ email, role: 'admin' }]);
  });
});
