import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DAY_MS, HOUR_MS } from '../../shared/time.js';
import { sql, statement, updateRows } from '../../control-plane/store/sql.js';
import type { ApiClient, InstanceBody } from '../harness/api-client.js';
import { World, type ApiKeyBody, type Key } from '../contract/world.js';
import { statusIs } from '../harness/control-plane.js';
import { EventReader } from '../harness/event-reader.js';
import { listening } from '../harness/told.js';

let world: World;
beforeAll(async () => {
  world = await World.make();
});
// An event about a key must not be taken for one of another test.
beforeEach(() => world.test.advance(1_000));
afterAll(() => world.stop());

type Restricted = Omit<Key, 'key'> & {
  key: ApiKeyBody & { read_only: boolean; allowed_addresses: string[] | null; expires_at: string | null };
};

async function keyWith(restrictions: object, by: ApiClient = world.admin.api): Promise<Restricted> {
  const made = await by.post<Omit<Restricted, 'api'>>('/v1/api-keys', { name: 'restricted', ...restrictions });
  return { ...made, api: world.test.api.as(made.secret) };
}

const after = (ms: number) => new Date(world.test.clock.now() + ms).toISOString();
const listed = async (id: string) =>
  (await world.admin.api.get<{ items: Restricted['key'][] }>('/v1/api-keys')).items.find((key) => key.id === id);
const statusOf = async ({ api }: Restricted, path = '/v1/offers') => (await api.request('GET', path)).status;

it('without restrictions a key has none', async () => {
  const { key } = await keyWith({});
  expect(key).toMatchObject({ read_only: false, allowed_addresses: null, expires_at: null });
  expect(await listed(key.id)).toEqual(key);
  const { key: same } = await keyWith({ allowed_addresses: null, expires_at: null, spend_caps: null });
  expect(same).toMatchObject({ read_only: false, allowed_addresses: null, expires_at: null });
});

it('its restrictions are shown as they were given', async () => {
  const allowed_addresses = ['192.0.2.1', '2001:db8::/32'];
  const { key } = await keyWith({ read_only: true, allowed_addresses, expires_at: after(DAY_MS) });
  expect(key).toMatchObject({ read_only: true, allowed_addresses, expires_at: after(DAY_MS) });
  expect(await listed(key.id)).toEqual(key);
});

it.each([
  [{ read_only: 'yes' }, 'read_only'],
  [{ allowed_addresses: [] }, 'allowed_addresses'],
  [{ allowed_addresses: Array.from({ length: 33 }, (_, index) => `192.0.2.${index}`) }, 'allowed_addresses'],
  [{ allowed_addresses: ['192.0.2.1', 'localhost'] }, 'allowed_addresses.1'],
  [{ allowed_addresses: ['::ffff:192.0.2.1'] }, 'allowed_addresses.0'],
  [{ allowed_addresses: ['1'.repeat(50)] }, 'allowed_addresses.0'],
  [{ expires_at: '2026-01-01T00:00:00.000Z' }, 'expires_at'],
  [{ expires_at: '2040-01-01' }, 'expires_at'],
  [{ spend_caps: { day_micro: -1 } }, 'spend_caps.day_micro'],
  [{ spend_caps: { week_micro: 1 } }, 'spend_caps'],
])('%j is refused, and nothing is kept', async (restrictions, path) => {
  const refused = await world.refused(world.admin.api, 'POST', '/v1/api-keys', { name: 'k', ...restrictions });
  expect(refused).toMatchObject({ status: 422, code: 'VALIDATION_FAILED' });
  expect((refused['details'] as { path: string }[])[0]?.path).toMatch(new RegExp(`^${path}`));
});

describe('a read-only key', () => {
  let key: Restricted;
  let full: Key;
  let instance: InstanceBody;
  let body: object;
  beforeAll(async () => {
    [key, full] = [await keyWith({ read_only: true }), await world.key()];
    const { agent, body: fitting } = await world.host({ gpus: 3 });
    const env = [
      { key: 'PLAIN', value: 'plain value' },
      { key: 'HIDDEN', value: 'hidden value', secret: true },
    ];
    const ports = [{ port: 8080, label: 'app', open_button: true, guard: 'proxy' }];
    const template = { name: 'with env', image: 'i', mode: ['ssh', 'jupyter'], env, ports };
    const { id: template_id } = await world.admin.api.post<{ id: string }>('/v1/templates', template);
    body = { ...fitting, template_id };
    const headers = { 'Idempotency-Key': 'known' };
    const { body: made } = await full.api.request<InstanceBody>('POST', '/v1/instances', body, headers);
    await statusIs(full.api, made.id, 'running');
    agent.automatic = false;
    // As if the host had reported them.
    const links = { jupyter_url: 'http://203.0.113.9:30001/lab', open_url: 'http://203.0.113.9:30002/?a=b' };
    world.test.core.platform.store.transact((tx) => tx.run(updateRows('instances', links, { id: made.id })));
    instance = await full.api.get<InstanceBody>(`/v1/instances/${made.id}`);
  });

  const refusedBy = (method: string, path: string, sent?: object) => world.refused(key.api, method, path, sent);

  it('reads, exports and estimates', async () => {
    for (const path of [
      '/v1/offers',
      `/v1/instances/${instance.id}`,
      `/v1/instances/${instance.id}/events`,
      '/v1/events',
      '/v1/api-keys',
      '/v1/billing/transactions.csv',
      '/v1/billing/summary.csv',
      `/v1/api-keys/${key.key.id}/spend-caps`,
    ])
      expect([path, await statusOf(key, path)]).toEqual([path, 200]);
    const before = world.test.dump();
    const headers = { 'Idempotency-Key': 'known' };
    expect((await key.api.request('POST', '/v1/instances/estimate', body, headers)).status).toBe(200);
    const sent = { method: 'HEAD', headers: { Authorization: `Bearer ${key.secret}` } };
    expect((await fetch(`${world.test.url}/v1/instances`, sent)).status).toBe(200);
    expect(world.test.dump()).toEqual(before);
  });

  it('changes nothing, also by an idempotency key that a full key has used', async () => {
    for (const [method, path, sent] of [
      ['POST', '/v1/instances', body],
      ['POST', '/v1/instances', {}],
      ['POST', `/v1/instances/${instance.id}/stop`],
      ['POST', `/v1/instances/${instance.id}/start`],
      ['POST', `/v1/instances/${instance.id}/access`],
      ['PATCH', `/v1/instances/${instance.id}`, { label: 'x' }],
      ['DELETE', `/v1/instances/${instance.id}`],
      ['DELETE', `/v1/instances/${instance.id}/schedule`],
      ['POST', `/v1/templates/${world.templateId}/duplicate`],
    ] as const)
      expect(await refusedBy(method, path, sent)).toMatchObject({ status: 403, code: 'API_KEY_READ_ONLY' });
    const before = world.test.dump();
    const headers = { 'Idempotency-Key': 'known' };
    const replayed = await key.api.request('POST', '/v1/instances', body, headers);
    expect(replayed).toMatchObject({ status: 403, body: { code: 'API_KEY_READ_ONLY' } });
    expect(replayed.headers.get('idempotent-replayed')).toBeNull();
    expect(world.test.dump()).toEqual(before);
    // The full key's is answered from what it has made.
    expect((await full.api.request('POST', '/v1/instances', body, headers)).status).toBe(201);
  });

  it('gets from routes that are for no key what every key gets', async () => {
    expect(await refusedBy('POST', '/v1/api-keys', { name: 'k' })).toMatchObject({ code: 'ADMIN_REQUIRED' });
    expect(await refusedBy('POST', '/v1/templates', { name: 'k', image: 'i' })).toMatchObject({
      code: 'TOKEN_INVALID',
    });
    const foreign = key.api.in(world.stranger.organizationId);
    expect(await world.refused(foreign, 'POST', '/v1/instances', body)).toMatchObject({ code: 'ORG_MISMATCH' });
  });

  it('sees no access token and no value of an environment', async () => {
    const token = String(instance['access_token']);
    expect(token).toMatch(/.{20}/);
    const secrets = [token, 'plain value', 'hidden value'];
    const path = `/v1/instances/${instance.id}`;
    const [seen, known] = [await key.api.get<InstanceBody>(path), await full.api.get<InstanceBody>(path)];
    expect(known).toMatchObject({
      access_token: token,
      jupyter_url: `http://203.0.113.9:30001/lab?token=${token}`,
      open_url: `http://203.0.113.9:30002/?a=b&token=${token}`,
    });
    const { template } = known as InstanceBody & { template: { id: string; hash_id: string; env: object[] } };
    expect(template.env).toContainEqual({ key: 'PLAIN', value: 'plain value', secret: false });
    expect(seen).toEqual({
      ...known,
      access_token: null,
      jupyter_url: 'http://203.0.113.9:30001/lab',
      open_url: 'http://203.0.113.9:30002/?a=b',
      template: { ...template, env: template.env.map((entry) => ({ ...entry, value: null })) },
    });
    for (const each of [
      path,
      '/v1/instances',
      '/v1/instances?limit=10',
      '/v1/instances?include_destroyed=true',
      '/v1/templates',
      `/v1/templates/${template.id}`,
      `/v1/templates/by-hash/${template.hash_id}`,
    ]) {
      const text = JSON.stringify((await key.api.request('GET', each)).body);
      expect([each, secrets.filter((secret) => text.includes(secret))]).toEqual([each, []]);
      expect(text).toContain('PLAIN');
    }
  });

  it('has an ETag of its own, which stays while nothing changes', async () => {
    for (const path of [`/v1/instances/${instance.id}`, '/v1/instances', '/v1/instances?limit=10']) {
      const [first, other] = [await key.api.request('GET', path), await full.api.request('GET', path)];
      const etag = first.headers.get('etag') ?? '';
      expect(etag).not.toBe(other.headers.get('etag'));
      expect((await key.api.request('GET', path, undefined, { 'If-None-Match': etag })).status).toBe(304);
      expect((await full.api.request('GET', path, undefined, { 'If-None-Match': etag })).status).toBe(200);
    }
  });
});

describe('a key with allowed addresses', () => {
  const from = ({ api }: Restricted, address: string, path = '/v1/instances', headers = {}) =>
    api.request<{ code?: string }>('GET', path, undefined, { 'X-Forwarded-For': address, ...headers });

  it('works from them, and from nowhere else', async () => {
    const key = await keyWith({ allowed_addresses: ['192.0.2.0/24', '2001:db8::/32'] });
    for (const address of ['192.0.2.5', '::ffff:192.0.2.5', '2001:db8::5', '198.51.100.1, 192.0.2.5'])
      expect([address, (await from(key, address)).status]).toEqual([address, 200]);
    // A client cannot put an address before its own: the proxy adds the client's at the end.
    for (const address of ['198.51.100.1', '192.0.2.5, 198.51.100.1', '::ffff:198.51.100.1', 'unknown', '2001:db9::5'])
      expect(await from(key, address)).toMatchObject({ status: 403, body: { code: 'API_KEY_ADDRESS' } });
    expect(await world.refused(key.api, 'GET', '/v1/instances')).toMatchObject({ code: 'API_KEY_ADDRESS' });
  });

  it('is refused before all else, without a word of the key, and is not used thereby', async () => {
    const key = await keyWith({ name: 'a telling name', allowed_addresses: ['192.0.2.77'], read_only: true });
    const other = { 'X-Org-Id': world.stranger.organizationId };
    for (const [method, path, headers] of [
      ['GET', '/v1/instances', {}],
      ['GET', '/v1/instances', other],
      ['POST', '/v1/instances', {}],
      ['GET', '/v1/me', {}],
      ['POST', '/v1/api-keys', other],
      ['GET', '/v1/operator/users', other],
      ['GET', '/v1/operator/nothing', {}],
    ] as const) {
      const { status, body } = await key.api.request<{ code: string }>(method, path, undefined, headers);
      expect([path, status, body.code]).toEqual([path, 403, 'API_KEY_ADDRESS']);
      const text = JSON.stringify(body);
      for (const told of ['a telling name', key.key.prefix, key.key.id, world.admin.organizationId, '192.0.2.77'])
        expect(text).not.toContain(told);
    }
    // Where no credential is needed, it is as none.
    expect((await key.api.request('GET', '/healthz', undefined, other)).status).toBe(200);
    expect((await key.api.request('GET', '/v1/nothing', undefined, other)).status).toBe(404);
    expect((await listed(key.key.id))?.last_used_at).toBeNull();
    await from(key, '192.0.2.77');
    expect((await listed(key.key.id))?.last_used_at).not.toBeNull();
  });

  it('that is revoked is refused alike from everywhere', async () => {
    const key = await keyWith({ allowed_addresses: ['192.0.2.0/24'] });
    await world.admin.api.delete(`/v1/api-keys/${key.key.id}`);
    const [near, far] = [await from(key, '192.0.2.5'), await from(key, '198.51.100.1')];
    expect(near).toMatchObject({ status: 401, body: { code: 'TOKEN_INVALID' } });
    const said = ({ body }: typeof near) => ({ ...body, request_id: '' });
    expect(said(far)).toEqual(said(near));
  });

  it('opens streams from them only', async () => {
    const { secret } = await keyWith({ allowed_addresses: ['192.0.2.0/24'] });
    const url = `${world.test.url}/v1/events`;
    expect(await EventReader.refused(url, secret)).toMatchObject({ status: 403, code: 'API_KEY_ADDRESS' });
    const reader = await EventReader.open(url, secret, { 'X-Forwarded-For': '192.0.2.5' });
    world.test.clock.advance(20_000);
    expect(reader.isOver).toBe(false);
    reader.kill();
  });
});

describe('a key that expires', () => {
  it('is refused from that moment on like a revoked one, and leaves the list', async () => {
    const key = await keyWith({ expires_at: after(HOUR_MS) });
    world.test.clock.advance(HOUR_MS - 1);
    expect(await statusOf(key)).toBe(200);
    expect(await listed(key.key.id)).toBeDefined();
    world.test.clock.advance(1);
    const [gone, revoked] = [await world.key(), await world.key()];
    await world.admin.api.delete(`/v1/api-keys/${revoked.key.id}`);
    const [expired, other] = [
      await world.refused(key.api, 'GET', '/v1/offers'),
      await revoked.api.request('GET', '/v1/offers'),
    ];
    expect(expired).toMatchObject({ status: 401, code: 'TOKEN_INVALID' });
    expect({ ...expired, request_id: '' }).toEqual({ status: 401, ...(other.body as object), request_id: '' });
    expect(await listed(key.key.id)).toBeUndefined();
    const path = `/v1/api-keys/${key.key.id}`;
    expect(await world.refused(world.admin.api, 'DELETE', path)).toMatchObject({ code: 'API_KEY_NOT_FOUND' });
    expect((await gone.api.request('GET', path.concat('/spend-caps'))).status).toBe(200);
  });

  it('is told of once, and is shown as revoked where it has deployed; the instance goes on', async () => {
    const key = await keyWith({ expires_at: after(HOUR_MS) });
    const { body, agent } = await world.host();
    const { id } = await world.running(body, key.api);
    agent.automatic = false;
    const told = listening(world.test, world.admin.organizationId);
    world.test.advance(HOUR_MS);
    world.test.advance(1_000);
    const { id: api_key_id, name, kind, prefix } = key.key;
    const events = told('api_key.expired').filter(({ subject }) => subject === `api-keys/${api_key_id}`);
    expect(events.map(({ data }) => data)).toEqual([{ api_key_id, name, kind, prefix }]);
    expect(await world.admin.api.get(`/v1/instances/${id}`)).toMatchObject({
      status: 'running',
      deployed_via_api_key: { id: api_key_id, revoked: true },
    });
    expect(told('api_key.revoked')).toEqual([]);
  });

  it('no longer counts for the limit', async () => {
    const { organizationId, api } = world.stranger;
    const { key } = await keyWith({ expires_at: after(HOUR_MS) }, api);
    const copies = `SELECT printf('00000000-0000-4000-8000-%012d', i) AS id, organization_id, creator_id, name, kind, prefix,
      'hash ' || i AS secret_hash, created_at, expires_at FROM n, api_keys WHERE id = '${key.id}'`;
    world.test.core.platform.store.transact((tx) =>
      tx.run(
        statement(
          sql.raw(
            `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 199)
             INSERT INTO api_keys (id, organization_id, creator_id, name, kind, prefix, secret_hash, created_at, expires_at) ${copies}`,
          ),
        ),
      ),
    );
    expect(await world.refused(api, 'POST', '/v1/api-keys', { name: 'k' })).toMatchObject({ code: 'LIMIT_REACHED' });
    world.test.clock.advance(HOUR_MS);
    expect((await api.request('POST', '/v1/api-keys', { name: 'k' })).status).toBe(201);
    // Every one is ended, though not all in one run, and told of.
    const told = listening(world.test, organizationId);
    world.test.advance(1_000);
    world.test.advance(1_000);
    expect(told('api_key.expired')).toHaveLength(200);
  });

  it('ends its streams', async () => {
    const { secret } = await keyWith({ expires_at: after(10_000) });
    const url = `${world.test.url}/v1/events`;
    const [reader, stays] = [
      await EventReader.open(url, secret),
      await EventReader.open(url, (await world.key()).secret),
    ];
    // Before the next comment, so that it is the worker which ends it.
    world.test.advance(10_000);
    expect(await reader.ended()).toBe('this credential may not read these events any more');
    expect(stays.isOver).toBe(false);
    stays.kill();
  });

  it('is refused, but not ended, while the clock must be confirmed', async () => {
    const key = await keyWith({ expires_at: after(DAY_MS) });
    world.test.clock.step(2 * DAY_MS);
    world.test.advance(1_000);
    expect(await statusOf(key)).toBe(401);
    world.test.clock.step(-2 * DAY_MS);
    world.test.advance(1_000);
    expect(await statusOf(key)).toBe(200);
    await world.test.operator.post('/v1/operator/clock/confirm');
    world.test.advance(DAY_MS);
    expect(await statusOf(key)).toBe(401);
  });
});

describe('a key with caps', () => {
  const capsOf = (id: string) => world.admin.api.get<Record<string, unknown>>(`/v1/api-keys/${id}/spend-caps`);

  it('has them from the first moment', async () => {
    const { key } = await keyWith({ spend_caps: { day_micro: 5, burn_per_hour_micro: 7 } });
    expect(await capsOf(key.id)).toMatchObject({
      day_micro: 5,
      burn_per_hour_micro: 7,
      month_micro: null,
      set_at: new Date(world.test.clock.now()).toISOString(),
    });
    const { body } = await world.host();
    const capped = await keyWith({ spend_caps: { burn_per_hour_micro: 1 } });
    expect(await world.refused(capped.api, 'POST', '/v1/instances', body)).toMatchObject({
      code: 'SPEND_LIMIT_REACHED',
    });
  });

  it('may be made by a member, who cannot change them later', async () => {
    const member = world.inOrg(world.member);
    const { key } = await keyWith({ spend_caps: { month_micro: 9 } }, member);
    expect(await capsOf(key.id)).toMatchObject({ month_micro: 9 });
    const none = { burn_per_hour_micro: null, day_micro: null, month_micro: null };
    const refused = await world.refused(member, 'PUT', `/v1/api-keys/${key.id}/spend-caps`, none);
    expect(refused).toMatchObject({ code: 'ADMIN_REQUIRED' });
  });

  it('without a single cap has none', async () => {
    const { key } = await keyWith({ spend_caps: {} });
    expect(await capsOf(key.id)).toMatchObject({ set_at: null, day_micro: null });
  });
});
