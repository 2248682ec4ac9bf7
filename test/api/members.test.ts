import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient, InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { makePublicKey } from '../harness/keys.js';

let test: TestControlPlane;

beforeAll(async () => {
  test = await TestControlPlane.start();
});
afterAll(() => test.stop());

const inOrg = (organizationId: string) => ({ 'X-Org-Id': organizationId });

interface Key {
  key: { id: string };
  secret: string;
}

async function invite(admin: Renter, guest: Renter, role = 'member'): Promise<string> {
  const { token } = await admin.api.post<{ token: string }>('/v1/orgs/current/invites', { email: guest.email, role });
  return token;
}

async function join(admin: Renter, role = 'member'): Promise<Renter> {
  const guest = await test.renter(0);
  test.clock.advance(1);
  await guest.api.post(`/v1/invites/${await invite(admin, guest, role)}/accept`);
  return guest;
}

function makeKey(member: Renter, organization: Renter, kind: string): Promise<Key> {
  return member.api
    .request<Key>('POST', '/v1/api-keys', { name: kind, kind }, inOrg(organization.organizationId))
    .then(({ body }) => body);
}

async function statusOf(api: ApiClient, path = '/v1/instances'): Promise<number> {
  return (await api.request('GET', path)).status;
}

describe('an invitation', () => {
  it('lets in the one whose address it names, once', async () => {
    const [admin, guest, other] = [await test.renter(0), await test.renter(0), await test.renter(0)];
    const token = await invite(admin, guest);
    test.clock.advance(1);
    const stolen = await other.api.request('POST', `/v1/invites/${token}/accept`);
    expect(stolen).toMatchObject({ status: 404, body: { code: 'INVITE_NOT_FOUND' } });
    const joined = await guest.api.post<Record<string, unknown>>(`/v1/invites/${token}/accept`);
    expect(joined).toMatchObject({ id: admin.organizationId, role: 'member' });
    const again = await guest.api.request('POST', `/v1/invites/${token}/accept`);
    expect(again).toMatchObject({ status: 404, body: { code: 'INVITE_NOT_FOUND' } });
    const { items } = await admin.api.get<{ items: { email: string }[] }>('/v1/orgs/current/members');
    expect(items.map(({ email }) => email)).toEqual([admin.email, guest.email]);
    const known = await admin.api.request('POST', '/v1/orgs/current/invites', { email: guest.email });
    expect(known).toMatchObject({ status: 409, body: { code: 'ALREADY_MEMBER' } });
  });

  it('is listed without its token, can be withdrawn, and expires', async () => {
    const [admin, guest] = [await test.renter(0), await test.renter(0)];
    const token = await invite(admin, guest);
    const { items } = await admin.api.get<{ items: { id: string }[] }>('/v1/orgs/current/invites');
    expect(JSON.stringify(items)).not.toContain(token.slice(4));
    expect((await admin.api.request('DELETE', `/v1/orgs/current/invites/${items[0]?.id ?? ''}`)).status).toBe(204);
    expect((await guest.api.request('POST', `/v1/invites/${token}/accept`)).status).toBe(404);
    const late = await invite(admin, guest);
    test.clock.advance(8 * 86_400_000);
    expect((await guest.api.request('POST', `/v1/invites/${late}/accept`)).status).toBe(404);
  });
});

describe('members', () => {
  it('cannot do what takes an admin', async () => {
    const admin = await test.renter(0);
    const member = await join(admin);
    const organization = inOrg(admin.organizationId);
    for (const [method, path, body] of [
      ['GET', '/v1/orgs/current/members'],
      ['GET', '/v1/orgs/current/invites'],
      ['POST', '/v1/orgs/current/invites', { email: 'a@example.com' }],
      ['PATCH', '/v1/orgs/current', { name: 'Mine' }],
      ['PATCH', `/v1/orgs/current/members/${member.userId}`, { role: 'admin' }],
      ['DELETE', `/v1/orgs/current/members/${admin.userId}`],
      ['POST', '/v1/api-keys', { name: 'x', kind: 'team' }],
    ] as const) {
      const answer = await member.api.request(method, path, body, organization);
      expect(answer, `${method} ${path}`).toMatchObject({ status: 403, body: { code: 'ADMIN_REQUIRED' } });
    }
  });

  it('revoke their own personal keys alone; an admin revokes any', async () => {
    const admin = await test.renter(0);
    const member = await join(admin);
    const organization = inOrg(admin.organizationId);
    const [own, team] = [await makeKey(member, admin, 'personal'), await makeKey(admin, admin, 'team')];
    const foreign = await makeKey(admin, admin, 'personal');
    for (const { key } of [team, foreign]) {
      const answer = await member.api.request('DELETE', `/v1/api-keys/${key.id}`, undefined, organization);
      expect(answer).toMatchObject({ status: 403, body: { code: 'ADMIN_REQUIRED' } });
    }
    expect((await member.api.request('DELETE', `/v1/api-keys/${own.key.id}`, undefined, organization)).status).toBe(
      204,
    );
    expect((await admin.api.request('DELETE', `/v1/api-keys/${team.key.id}`)).status).toBe(204);
  });

  it('are chosen by X-Org-Id; of another organization it is a mismatch', async () => {
    const admin = await test.renter(0);
    const member = await join(admin);
    const active = async (headers = {}) =>
      (await member.api.request<{ active_organization_id: string }>('GET', '/v1/me', undefined, headers)).body;
    expect((await active()).active_organization_id).toBe(member.organizationId);
    expect((await active(inOrg(admin.organizationId))).active_organization_id).toBe(admin.organizationId);
    const stranger = await test.renter(0);
    const mismatch = await stranger.api.request('GET', '/v1/me', undefined, inOrg(admin.organizationId));
    expect(mismatch).toMatchObject({ status: 403, body: { code: 'ORG_MISMATCH' } });
  });

  it('change roles, and the last admin stays', async () => {
    const admin = await test.renter(0);
    const member = await join(admin);
    const before = test.dump();
    for (const answer of [
      await admin.api.request('PATCH', `/v1/orgs/current/members/${admin.userId}`, { role: 'member' }),
      await admin.api.request('DELETE', `/v1/orgs/current/members/${admin.userId}`),
      await admin.api.request('DELETE', `/v1/me/organizations/${admin.organizationId}`),
    ]) {
      expect(answer).toMatchObject({ status: 409, body: { code: 'LAST_ADMIN' } });
    }
    expect(test.dump()).toEqual(before);
    const promoted = await admin.api.request('PATCH', `/v1/orgs/current/members/${member.userId}`, { role: 'admin' });
    expect(promoted.body).toMatchObject({ id: member.userId, role: 'admin' });
    expect((await admin.api.request('DELETE', `/v1/me/organizations/${admin.organizationId}`)).status).toBe(204);
    const unknown = await member.api.request(
      'DELETE',
      `/v1/orgs/current/members/${admin.userId}`,
      undefined,
      inOrg(admin.organizationId),
    );
    expect(unknown).toMatchObject({ status: 404, body: { code: 'MEMBER_NOT_FOUND' } });
  });
});

describe('who leaves', () => {
  it('takes the personal keys along, in that moment; team keys go on', async () => {
    const admin = await test.renter(0);
    const member = await join(admin, 'admin');
    const [personal, team] = [await makeKey(member, admin, 'personal'), await makeKey(member, admin, 'team')];
    expect([await statusOf(test.api.as(personal.secret)), await statusOf(test.api.as(team.secret))]).toEqual([
      200, 200,
    ]);
    await member.api.delete(`/v1/me/organizations/${admin.organizationId}`);
    expect([await statusOf(test.api.as(personal.secret)), await statusOf(test.api.as(team.secret))]).toEqual([
      401, 200,
    ]);
    const { items } = await admin.api.get<{ items: Record<string, unknown>[] }>('/v1/api-keys');
    expect(items).toMatchObject([{ id: team.key.id, creator_is_member: false, creator_email: member.email }]);

    // Who comes back is a member again; the revoked keys stay revoked.
    await member.api.post(`/v1/invites/${await invite(admin, member)}/accept`);
    const again = await admin.api.get<{ items: Record<string, unknown>[] }>('/v1/api-keys');
    expect(again.items).toMatchObject([{ id: team.key.id, creator_is_member: true }]);
    expect(await statusOf(test.api.as(personal.secret))).toBe(401);
  });

  it('leaves no SSH key that a team key could attach', async () => {
    const admin = await test.renter();
    const member = await join(admin, 'admin');
    const team = await makeKey(member, admin, 'team');
    const keyOf = ({ api }: Renter) =>
      api.post<{ id: string }>('/v1/ssh-keys', { name: 'k', public_key: makePublicKey('-t', 'ed25519') });
    const [theirs, admins] = [await keyOf(member), await keyOf(admin)];
    const agent = await test.host({ gpus: 3 });
    const offer = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
    const deploy = (ssh_key_id: string) =>
      test.api.as(team.secret).request<InstanceBody>('POST', '/v1/instances', { ...offer, ssh_key_id });
    expect((await deploy(theirs.id)).status).toBe(201);
    await member.api.delete(`/v1/me/organizations/${admin.organizationId}`);
    expect(await deploy(theirs.id)).toMatchObject({ status: 404, body: { code: 'SSH_KEY_NOT_FOUND' } });
    const own = await deploy(admins.id);
    expect(own.status).toBe(201);
    await statusIs(admin.api, own.body.id, 'running');
  });

  it('may belong to no organization, and still sign in and found one', async () => {
    const lonely = await test.renter(0);
    const heir = await join(lonely, 'admin');
    await lonely.api.delete(`/v1/me/organizations/${lonely.organizationId}`);
    expect(await lonely.api.get('/v1/me')).toMatchObject({ memberships: [], active_organization_id: null });
    expect(await lonely.api.request('GET', '/v1/instances')).toMatchObject({
      status: 403,
      body: { code: 'ORG_MISMATCH' },
    });
    const signedIn = await test.api.post<{ token: string; organization: null }>('/v1/auth/sign-in', {
      email: lonely.email,
      password: 'a renter password',
    });
    expect(signedIn.organization).toBeNull();
    const founded = await test.api.as(signedIn.token).request('POST', '/v1/orgs', { name: 'New' });
    expect(founded).toMatchObject({ status: 201, body: { name: 'New', balance_micro: 0, burn_per_hour_micro: 0 } });
    expect(await statusOf(test.api.as(signedIn.token))).toBe(200);
    const renamed = await heir.api.request('PATCH', '/v1/orgs/current', { name: 'Ours' }, inOrg(lonely.organizationId));
    expect(renamed.body).toMatchObject({ name: 'Ours' });
  });
});

it('a new password ends every other session', async () => {
  const renter = await test.renter(0);
  const current_password = 'a renter password';
  const { token } = await test.api.post<{ token: string }>('/v1/auth/sign-in', {
    email: renter.email,
    password: current_password,
  });
  const wrong = await renter.api.request('POST', '/v1/auth/password', {
    current_password: 'x',
    new_password: 'another password',
  });
  expect(wrong).toMatchObject({ status: 401, body: { code: 'INVALID_CREDENTIALS' } });
  await renter.api.post('/v1/auth/password', { current_password, new_password: 'another password' });
  expect([await statusOf(renter.api, '/v1/me'), await statusOf(test.api.as(token), '/v1/me')]).toEqual([200, 401]);
  const old = await test.api.request('POST', '/v1/auth/sign-in', { email: renter.email, password: current_password });
  expect(old.status).toBe(401);
});
