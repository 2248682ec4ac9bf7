import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROLES, losesRight, may, rolesWith, type Caller, type Role } from '../../control-plane/domain/caller.js';
import { mailLinks } from '../../control-plane/domain/mail/mail-links.js';
import { wordsOf } from '../../control-plane/domain/mail/mail-words.js';
import type { ApiClient, InstanceBody } from '../harness/api-client.js';
import { World } from '../contract/world.js';
import type { Renter } from '../harness/control-plane.js';
import { EventReader } from '../harness/event-reader.js';
import { makePublicKey } from '../harness/keys.js';
import { listening } from '../harness/told.js';

let world: World;
beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.stop());

const roleIs = (member: Renter, role: Role, by: ApiClient = world.admin.api) =>
  by.request<{ role: Role; code?: string }>('PATCH', `/v1/orgs/current/members/${member.userId}`, { role });
const NO_CAPS = { burn_per_hour_micro: null, day_micro: null, month_micro: null };

describe('the rules', () => {
  it('each role may do what is written here, and an API key as a member or a viewer', () => {
    const rightsOf = (caller: Partial<Caller>) =>
      (['read', 'read_money', 'change', 'change_money', 'administer'] as const).filter((right) =>
        may(caller as Caller, right),
      );
    const session = (role: Role) => rightsOf({ kind: 'session', role });
    expect(session('admin')).toEqual(['read', 'read_money', 'change', 'change_money', 'administer']);
    expect(session('member')).toEqual(['read', 'read_money', 'change']);
    expect(session('viewer')).toEqual(['read', 'read_money']);
    expect(session('billing')).toEqual(['read_money', 'change_money']);
    expect(rightsOf({ kind: 'api_key', isReadOnly: false })).toEqual(session('member'));
    expect(rightsOf({ kind: 'api_key', isReadOnly: true })).toEqual(session('viewer'));
    expect(rolesWith('change_money')).toEqual(['admin', 'billing']);
  });

  it('it is a demotion to become a viewer or a payer', () => {
    const demotions = ROLES.flatMap((before) =>
      ROLES.filter((after) => losesRight('change', before, after)).map((after) => `${before} to ${after}`),
    );
    expect(demotions).toEqual(['admin to billing', 'admin to viewer', 'member to billing', 'member to viewer']);
  });

  it.each([
    ['admin', 'an admin'],
    ['member', 'a member'],
    ['viewer', 'a viewer'],
    ['billing', 'a member with the role billing'],
  ] as const)('an invitation says that one would be %s', (role, words) => {
    const who = { organization: 'Labs', invited_by: 'a@example.com', invite_id: 'i', token: 't', expires_at: 0 };
    const { means } = wordsOf({ kind: 'invite', role, ...who }, mailLinks('https://gpus.example'));
    expect(means).toContain(`You would be ${words} of it.`);
  });
});

describe('a viewer', () => {
  let viewer: ApiClient;
  let body: object;
  let instance: InstanceBody;
  beforeAll(async () => {
    viewer = world.inOrg(await world.join('viewer'));
    const { agent, body: fitting } = await world.host({ gpus: 2 });
    const env = [{ key: 'PLAIN', value: 'plain value' }];
    const template = { name: 'env', image: 'i', mode: ['ssh', 'jupyter'], env };
    const { id: template_id } = await world.admin.api.post<{ id: string }>('/v1/templates', template);
    body = { ...fitting, template_id };
    instance = await world.running(body);
    agent.automatic = false;
  });

  it('reads what a member reads, without secrets', async () => {
    const member = world.inOrg(world.member);
    for (const path of [
      '/v1/offers',
      '/v1/catalog/status',
      '/v1/events?limit=100',
      '/v1/api-keys',
      '/v1/orgs/current',
      '/v1/orgs/current/spend-caps',
      '/v1/billing/transactions',
      `/v1/instances/${instance.id}/events`,
      `/v1/instances/${instance.id}/usage`,
      '/v1/metrics/instances',
    ])
      expect((await viewer.request('GET', path)).body, path).toEqual((await member.request('GET', path)).body);
    expect((await member.get<InstanceBody>(`/v1/instances/${instance.id}`))['access_token']).toMatch(/.{20}/);
    for (const path of [`/v1/instances/${instance.id}`, '/v1/instances', '/v1/templates']) {
      const text = JSON.stringify((await viewer.request('GET', path)).body);
      for (const secret of [String(instance['access_token']), 'plain value']) expect(text).not.toContain(secret);
    }
    expect((await viewer.request('POST', '/v1/instances/estimate', body)).status).toBe(200);
  });

  it('changes nothing', async () => {
    for (const [method, path, sent] of [
      ['POST', '/v1/instances', body],
      ['POST', `/v1/instances/${instance.id}/stop`],
      ['POST', `/v1/instances/${instance.id}/access`],
      ['DELETE', `/v1/instances/${instance.id}`],
      ['POST', '/v1/templates', { name: 'k', image: 'i' }],
      ['POST', `/v1/templates/${world.templateId}/duplicate`],
      ['POST', '/v1/api-keys', { name: 'k' }],
    ] as const) {
      const refused = await world.refused(viewer, method, path, sent);
      expect(refused).toMatchObject({
        status: 403,
        code: 'ROLE_NOT_ALLOWED',
        role: 'viewer',
        allowed_roles: ['admin', 'member'],
      });
    }
    for (const [method, path, sent] of [
      ['PUT', '/v1/orgs/current/spend-caps', NO_CAPS],
      ['POST', '/v1/billing/checkout-session', { amount_micro: 5_000_000 }],
      ['GET', '/v1/orgs/current/members'],
      ['GET', '/v1/webhook-endpoints'],
      ['PATCH', '/v1/orgs/current', { name: 'x' }],
    ] as const)
      expect(await world.refused(viewer, method, path, sent)).toMatchObject({ status: 403, code: 'ADMIN_REQUIRED' });
  });

  it('who is an operator is one all the same', async () => {
    const operator = await world.join('viewer');
    world.test.makeOperator(operator.userId);
    expect((await world.inOrg(operator).request('GET', '/v1/operator/users')).status).toBe(200);
  });

  it('signs up by an invitation, leaves, and has rights of their own elsewhere', async () => {
    const email = 'new-viewer@example.com';
    const invitation = { email, role: 'viewer' };
    const { token } = await world.admin.api.post<{ token: string }>('/v1/orgs/current/invites', invitation);
    const account = { email, password: 'a fine password', name: 'V', invite_token: token };
    const signed = await world.test.api.post<{ token: string; organization: { role: string } }>(
      '/v1/auth/sign-up',
      account,
    );
    expect(signed.organization.role).toBe('viewer');
    const api = world.test.api.as(signed.token);
    expect(await api.get('/v1/me')).toMatchObject({ memberships: [{ role: 'viewer' }] });
    const { id } = await api.post<{ id: string }>('/v1/orgs', { name: 'own' });
    expect((await api.in(id).request('POST', '/v1/api-keys', { name: 'k' })).status).toBe(201);
    expect((await api.request('DELETE', `/v1/me/organizations/${world.admin.organizationId}`)).status).toBe(204);
  });
});

describe('the role billing', () => {
  it('reads about money and on what charges rest, pays and sets caps', async () => {
    const billing = world.inOrg(await world.join('billing'));
    const { body } = await world.host();
    const { id } = await world.running(body);
    for (const path of [
      `/v1/instances/${id}/meter-intervals`,
      '/v1/orgs/current',
      '/v1/orgs/current/spend-caps',
      '/v1/billing/transactions',
      '/v1/billing/transactions.csv',
      '/v1/billing/spend-daily',
      '/v1/billing/summary',
      '/v1/billing/summary.csv',
    ])
      expect([path, (await billing.request('GET', path)).status]).toEqual([path, 200]);
    const caps = { ...NO_CAPS, month_micro: 1_000_000_000 };
    expect((await billing.request('PUT', '/v1/orgs/current/spend-caps', caps)).status).toBe(200);
    const { key } = await world.key();
    const path = `/v1/api-keys/${key.id}/spend-caps`;
    expect(await billing.request('PUT', path, caps)).toMatchObject({ status: 200, body: caps });
    const checkout = await billing.request('POST', '/v1/billing/checkout-session', { amount_micro: 5_000_000 });
    expect(checkout).toMatchObject({ status: 409, body: { code: 'CHECKOUT_UNAVAILABLE' } });
    await billing.request('PUT', '/v1/orgs/current/spend-caps', NO_CAPS);
  });

  it('does and reads nothing else', async () => {
    const billing = world.inOrg(await world.join('billing'));
    for (const [method, path] of [
      ['GET', '/v1/instances'],
      ['GET', '/v1/events'],
      ['GET', '/v1/offers'],
      ['GET', '/v1/templates'],
      ['GET', '/v1/api-keys'],
      ['GET', '/v1/metrics/instances'],
      ['POST', '/v1/instances/estimate'],
      ['POST', '/v1/instances'],
      ['POST', '/v1/api-keys'],
    ] as const)
      expect(await world.refused(billing, method, path)).toMatchObject({ status: 403, code: 'ROLE_NOT_ALLOWED' });
    for (const path of ['/v1/orgs/current/members', '/v1/orgs/current/invites', '/v1/webhook-endpoints'])
      expect(await world.refused(billing, 'GET', path)).toMatchObject({ status: 403, code: 'ADMIN_REQUIRED' });
    expect(await billing.get('/v1/me')).toMatchObject({ active_organization_id: world.admin.organizationId });
  });
});

describe('a change of the role', () => {
  it.each(['viewer', 'billing'] as const)('to %s revokes the personal keys in the same moment', async (role) => {
    const { body, agent } = await world.host();
    const { id } = await world.running(body);
    agent.automatic = false;
    const member = await world.join('admin');
    const [personal, team] = [await world.key('personal', member), await world.key('team', member)];
    const others = await world.key('personal', world.member);
    const own = await member.api.post<{ secret: string }>('/v1/api-keys', { name: 'elsewhere' });
    const told = listening(world.test, world.admin.organizationId);
    expect((await roleIs(member, role)).body).toMatchObject({ id: member.userId, role });
    const statusOf = async ({ secret }: { secret: string }) =>
      (await world.test.api.as(secret).request('GET', '/v1/offers')).status;
    expect(await Promise.all([personal, team, others, own].map(statusOf))).toEqual([401, 200, 200, 200]);
    const events = told();
    expect(events.filter(({ type }) => !type.startsWith('instance.')).map(({ type, data }) => [type, data])).toEqual([
      ['member.role_changed', { user_id: member.userId, role }],
      [
        'api_key.revoked',
        { api_key_id: personal.key.id, name: 'personal', kind: 'personal', prefix: personal.key.prefix },
      ],
    ]);
    const note = events.find(({ subject }) => subject === `instances/${id}`)?.data as { kind: string; message: string };
    expect(note.kind).toBe('member_demoted');
    expect(note.message).toContain(`${member.email} has the role ${role} now and may know the access token`);
    expect(note.message).toContain('replace its access token');
    // With the old role they get the same rights again, but no key.
    await roleIs(member, 'member');
    expect(await statusOf(personal)).toBe(401);
    expect((await world.inOrg(member).request('POST', '/v1/api-keys', { name: 'new' })).status).toBe(201);
  });

  it('that takes no right to change away revokes none', async () => {
    const member = await world.join('admin');
    const key = await world.key('personal', member);
    const told = listening(world.test, world.admin.organizationId);
    await roleIs(member, 'member');
    await roleIs(member, 'member');
    expect(told().map(({ type }) => type)).toEqual(['member.role_changed']);
    expect((await key.api.request('GET', '/v1/offers')).status).toBe(200);
  });

  it('leaves an admin, whatever the role', async () => {
    for (const role of ['member', 'viewer', 'billing'] as const) {
      const before = world.test.dump();
      expect(await roleIs(world.admin, role)).toMatchObject({ status: 409, body: { code: 'LAST_ADMIN' } });
      expect(world.test.dump()).toEqual(before);
    }
    expect((await roleIs(world.admin, 'owner' as Role)).status).toBe(422);
  });

  it('to billing ends the streams of events; to viewer it does not', async () => {
    const open = async (member: Renter) =>
      EventReader.open(`${world.test.url}/v1/events`, member.api.token, { 'X-Org-Id': world.admin.organizationId });
    const [one, other] = [await world.join(), await world.join()];
    const [ends, stays] = [await open(one), await open(other)];
    await roleIs(other, 'viewer');
    await roleIs(one, 'billing');
    expect(await ends.ended()).toBe('this credential may not read these events any more');
    expect(ends.events.map(({ data }) => data.data['user_id'])).not.toContain(one.userId);
    await stays.has(2);
    expect(stays.isOver).toBe(false);
    stays.kill();
  });

  it('leaves no SSH key that a team key could attach', async () => {
    const member = await world.join();
    const added = { name: 'k', public_key: makePublicKey('-t', 'ed25519') };
    const { id: ssh_key_id } = await member.api.post<{ id: string }>('/v1/ssh-keys', added);
    const team = await world.key('team');
    const { body } = await world.host({ gpus: 2 });
    const estimate = async () =>
      (await team.api.post<{ refusals: { code: string }[] }>('/v1/instances/estimate', { ...body, ssh_key_id }))
        .refusals;
    expect(await estimate()).toEqual([]);
    await roleIs(member, 'viewer');
    expect((await estimate()).map(({ code }) => code)).toEqual(['SSH_KEY_NOT_FOUND']);
    const refused = await world.refused(team.api, 'POST', '/v1/instances', { ...body, ssh_key_id });
    expect(refused).toMatchObject({ status: 404, code: 'SSH_KEY_NOT_FOUND' });
  });
});
