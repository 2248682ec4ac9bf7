import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import { fetchDocument } from '../harness/openapi-conformance.js';
import { World, NOWHERE, type Refused } from '../contract/world.js';
import { PLAIN_TEXT } from '../harness/plain-text.js';
import { listening } from '../harness/told.js';
import { statusIs, type Renter } from '../harness/control-plane.js';

let world: World;
beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.stop());

const operator = () => world.test.operator;
const lastAct = async () => (await operator().get<{ items: object[] }>('/v1/operator/audit-log?limit=1')).items[0];
const isOperator = async ({ api }: Pick<Renter, 'api'>) =>
  (await api.request('GET', '/v1/operator/users')).status === 200;
const ownId = async () => {
  const { user } = await operator().get<{ user: { id: string } }>('/v1/me');
  return user.id;
};

describe('an operator ends the sessions of a user', () => {
  const end = (id: string, body: object) =>
    operator().request<{ sessions: number; api_keys: number } & Refused>(
      'POST',
      `/v1/operator/users/${id}/end-sessions`,
      body,
    );

  it('at once, and leaves the API keys unless told otherwise; the organization reads why', async () => {
    const member = await world.join('admin');
    const key = await world.key('team', member);
    const again = { email: member.email, password: 'a renter password' };
    await world.test.api.post('/v1/auth/sign-in', again);
    const told = listening(world.test, world.admin.organizationId);
    const reason = 'the laptop was stolen';
    expect(await end(member.userId, { reason })).toMatchObject({ status: 200, body: { sessions: 2, api_keys: 0 } });
    expect((await member.api.request('GET', '/v1/me')).status).toBe(401);
    expect((await key.api.request('GET', '/v1/instances')).status).toBe(200);
    expect(told()).toMatchObject([
      {
        type: 'member.sessions_ended',
        subject: `members/${member.userId}`,
        data: { user_id: member.userId, reason, api_keys_revoked: 0 },
      },
    ]);
    expect(await lastAct()).toMatchObject({ action: 'user.end_sessions', subject: member.userId, details: { reason } });
    expect(await world.admin.api.get('/v1/audit-log?limit=1')).toMatchObject({
      items: [{ action: 'member.end_sessions', actor_kind: 'operator', reason }],
    });
    const { token } = await world.test.api.post<{ token: string }>('/v1/auth/sign-in', again);
    expect(await end(member.userId, { reason, revoke_api_keys: true })).toMatchObject({
      body: { sessions: 1, api_keys: 1 },
    });
    expect((await key.api.request('GET', '/v1/instances')).status).toBe(401);
    expect((await world.test.api.as(token).request('GET', '/v1/me')).status).toBe(401);
    expect(told('member.sessions_ended')).toMatchObject([{ data: { api_keys_revoked: 1 } }]);
  });

  it('of somebody, with a reason', async () => {
    const before = world.test.dump();
    expect(await end(NOWHERE, { reason: 'x' })).toMatchObject({ status: 404, body: { code: 'USER_NOT_FOUND' } });
    for (const body of [{}, { reason: '' }, { reason: 'a\nb' }, { reason: 'x'.repeat(257) }])
      expect((await end(world.member.userId, body)).status).toBe(422);
    expect(world.test.dump()).toEqual(before);
  });
});

describe('an operator makes operators', () => {
  const set = (method: 'PUT' | 'DELETE', id: string, reason = 'a colleague') =>
    operator().request<Refused>(method, `/v1/operator/users/${id}/operator`, { reason });

  it('and ordinary users of them, from their next request on; operators read why', async () => {
    const colleague = await world.test.renter(0);
    const told = listening(world.test);
    expect(await isOperator(colleague)).toBe(false);
    expect(await set('PUT', colleague.userId)).toMatchObject({ status: 200, body: { is_operator: true } });
    expect(await isOperator(colleague)).toBe(true);
    const once = world.test.dump();
    expect((await set('PUT', colleague.userId)).status).toBe(200);
    expect(world.test.dump()).toEqual(once);
    expect(await lastAct()).toMatchObject({ action: 'operator.grant', subject: colleague.userId });
    expect(await set('DELETE', colleague.userId, 'has left')).toMatchObject({ body: { is_operator: false } });
    expect(await isOperator(colleague)).toBe(false);
    const by_user_id = await ownId();
    expect(told()).toMatchObject([
      { type: 'operator.granted', data: { user_id: colleague.userId, by_user_id, reason: 'a colleague' } },
      { type: 'operator.withdrawn', data: { user_id: colleague.userId, by_user_id, reason: 'has left' } },
    ]);
    expect(await set('DELETE', NOWHERE)).toMatchObject({ status: 404, body: { code: 'USER_NOT_FOUND' } });
  });

  it('but is never the last one to go', async () => {
    const self = await ownId();
    const before = world.test.dump();
    expect(await set('DELETE', self)).toMatchObject({ status: 409, body: { code: 'LAST_OPERATOR' } });
    expect(world.test.dump()).toEqual(before);
    const colleague = await world.test.renter(0);
    await set('PUT', colleague.userId);
    expect((await set('DELETE', self)).status).toBe(200);
    expect((await operator().request('GET', '/v1/operator/users')).status).toBe(404);
    const back = await colleague.api.request('PUT', `/v1/operator/users/${self}/operator`, { reason: 'back' });
    expect(back.status).toBe(200);
    await set('DELETE', colleague.userId);
  });
});

describe('an operator sees what an organization has', () => {
  const of = <T>(what: string, { organizationId } = world.admin) =>
    operator().get<T>(`/v1/operator/organizations/${organizationId}${what}`);
  interface Page {
    items: Record<string, unknown>[];
  }

  it('its balance, keys, templates and machines, and none of its secrets', async () => {
    const { admin } = world;
    const env = [{ key: 'TOKEN', value: 'nobody-sees-this', secret: true }];
    const registry = { username: 'u', password: 'nor-this-password' };
    const made = { name: 'Mine', image: 'registry.example/i:1', env, onstart: 'echo or-this', registry };
    const { id } = await admin.api.post<{ id: string }>('/v1/templates', made);
    const key = await world.key('team', admin, 'nightly');
    const { agent, body } = await world.host({ gpus: 2 });
    const [one] = [await world.running(body), await world.running(body)];
    expect(await of('')).toMatchObject({
      id: admin.organizationId,
      suspension: null,
      balance_micro: expect.any(Number) as number,
    });
    expect((await of<Page>('/api-keys')).items).toContainEqual(
      expect.objectContaining({ id: key.key.id, name: 'nightly', kind: 'team' }),
    );
    expect((await of<Page>('/templates')).items).toContainEqual({
      id,
      name: 'Mine',
      kind: 'container',
      visibility: 'organization',
      image: 'registry.example/i:1',
      created_at: expect.any(String) as string,
    });
    expect((await of<Page>('/machines')).items).toContainEqual(
      expect.objectContaining({ id: agent.hostId, instances: 2 }),
    );
    const { access_token } = await admin.api.get<{ access_token: string | null }>(`/v1/instances/${one.id}`);
    const all = JSON.stringify(await Promise.all(['', '/api-keys', '/templates', '/machines'].map((what) => of(what))));
    for (const secret of ['nobody-sees-this', 'nor-this-password', 'or-this', key.secret, access_token ?? 'none'])
      expect(all).not.toContain(secret);
  });
});

describe('an operator tells the renters of a machine something', () => {
  const notice = (id: string, message: string) =>
    operator().request<{ organizations: number } & Refused>('POST', `/v1/operator/machines/${id}/notice`, { message });

  it('each organization with an instance there once, and no other; and not again for ten minutes', async () => {
    const [one, other] = [await world.test.renter(), await world.test.renter()];
    const { agent, body } = await world.host({ gpus: 4 });
    const ids = [await world.running(body, one.api), await world.running(body, one.api)].map(({ id }) => id);
    const gone = await world.running(body, other.api);
    await other.api.delete(`/v1/instances/${gone.id}`);
    await statusIs(other.api, gone.id, 'destroyed');
    const told = [one, other].map(({ organizationId }) => listening(world.test, organizationId));
    const message = 'we replace a disk tonight';
    expect(await notice(agent.hostId, message)).toMatchObject({ status: 200, body: { organizations: 1 } });
    const [event, ...others] = told[0]?.('machine.notice') ?? [];
    expect(others).toEqual([]);
    expect(event).toMatchObject({ subject: `machines/${agent.hostId}`, data: { machine_id: agent.hostId, message } });
    expect((event?.data['instance_ids'] as string[] | undefined)?.sort()).toEqual(ids.sort());
    expect(told[1]?.('machine.notice')).toEqual([]);
    const before = world.test.dump();
    expect(await notice(agent.hostId, message)).toMatchObject({
      status: 429,
      body: { code: 'RATE_LIMITED', retry_after_seconds: 600 },
    });
    expect(world.test.dump()).toEqual(before);
    world.test.clock.advance(10 * MINUTE_MS);
    expect((await notice(agent.hostId, message)).status).toBe(200);
  });

  it('as plain text on one line, of at most 500 characters', async () => {
    const { agent } = await world.host();
    const before = world.test.dump();
    for (const text of ['', 'two\nlines', '\u202eesrever', 'x'.repeat(501)])
      expect((await notice(agent.hostId, text)).status).toBe(422);
    expect(await notice(NOWHERE, 'x')).toMatchObject({ status: 404, body: { code: 'MACHINE_NOT_FOUND' } });
    expect(world.test.dump()).toEqual(before);
  });
});

it('the document of the API names where to report abuse, if the operator has said so', async () => {
  interface Info {
    info: { contact: object };
  }
  const contact = async () => ((await fetchDocument(world.test.url)) as unknown as Info).info.contact;
  expect(await contact()).toEqual({ name: 'The operator of this marketplace' });
  const abuse = { email: 'abuse@gpus.example', url: 'https://gpus.example/abuse' };
  await world.test.restart({ abuse, tls: PLAIN_TEXT });
  expect(await contact()).toEqual({ name: 'The operator of this marketplace', ...abuse });
});
