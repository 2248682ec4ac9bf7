import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient, InstanceBody } from '../harness/api-client.js';
import { statusIs } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import { makePublicKey } from '../harness/keys.js';
import { NOWHERE, World, type ApiKeyBody, type DeployBody, type Key } from './world.js';

let world: World;
beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.stop());

const keysOf = async (api: ApiClient) => (await api.get<{ items: ApiKeyBody[] }>('/v1/api-keys')).items;

describe('Endpoints: API keys', () => {
  it('POST: {key, secret}; kind defaults to personal', async () => {
    const answer = await world.admin.api.request<Key>('POST', '/v1/api-keys', { name: 'laptop' });
    expect(answer.status).toBe(201);
    expect(Object.keys(answer.body).sort()).toEqual(['key', 'secret']);
    expect(answer.body.key).toMatchObject({ name: 'laptop', kind: 'personal', last_used_at: null });
  });
  it('POST: requires a signed-in session; an API key gets 403 ADMIN_REQUIRED', async () => {
    for (const kind of ['personal', 'team'] as const) {
      const { api } = await world.key(kind);
      const refused = await world.refused(api, 'POST', '/v1/api-keys', { name: 'more' });
      expect(refused).toMatchObject({ status: 403, code: 'ADMIN_REQUIRED' });
    }
  });
  it('POST: kind team requires an admin session', async () => {
    const member = world.inOrg(world.member);
    const refused = await world.refused(member, 'POST', '/v1/api-keys', { name: 'ci', kind: 'team' });
    expect(refused).toMatchObject({ status: 403, code: 'ADMIN_REQUIRED' });
  });
  it('GET: the organization’s active keys, newest first, without revoked ones and without secrets; also with an API key', async () => {
    const [first, revoked, last] = [await world.key(), await world.key(), await world.key('team')];
    await world.admin.api.delete(`/v1/api-keys/${revoked.key.id}`);
    for (const api of [world.admin.api, world.inOrg(world.member), last.api]) {
      const ids = (await keysOf(api)).map(({ id }) => id);
      expect(ids.slice(0, 2)).toEqual([last.key.id, first.key.id]);
      expect(ids).not.toContain(revoked.key.id);
    }
    expect(await keysOf(world.stranger.api)).toEqual([]);
  });
  it('DELETE: 204 without a body; the key stops working on its next request; its instances stay', async () => {
    const key = await world.key();
    const { body } = await world.host();
    const { id } = await world.running(body, key.api);
    expect(await world.admin.api.request('DELETE', `/v1/api-keys/${key.key.id}`)).toMatchObject({
      status: 204,
      body: null,
    });
    expect((await key.api.request('GET', '/v1/instances')).status).toBe(401);
    expect((await world.admin.api.get<InstanceBody>(`/v1/instances/${id}`)).status).toBe('running');
  });
  it('DELETE: unknown, already revoked, or other organization’s key gives 404 API_KEY_NOT_FOUND', async () => {
    const [revoked, other] = [await world.key(), await world.key()];
    await world.admin.api.delete(`/v1/api-keys/${revoked.key.id}`);
    for (const [api, id] of [
      [world.admin.api, NOWHERE],
      [world.admin.api, 'nothing'],
      [world.admin.api, revoked.key.id],
      [world.stranger.api, other.key.id],
    ] as const) {
      const refused = await world.refused(api, 'DELETE', `/v1/api-keys/${id}`);
      expect(refused).toMatchObject({ status: 404, code: 'API_KEY_NOT_FOUND' });
    }
  });
});

describe('Endpoints: revocation permissions', () => {
  const revoke = async (api: ApiClient, key: Key) => (await api.request('DELETE', `/v1/api-keys/${key.key.id}`)).status;

  it('an admin session: any key in the organization', async () => {
    for (const key of [
      await world.key('team'),
      await world.key('personal'),
      await world.key('personal', world.member),
    ]) {
      expect(await revoke(world.admin.api, key)).toBe(204);
    }
  });
  it('a member session: only their own personal keys', async () => {
    const member = world.inOrg(world.member);
    expect(await revoke(member, await world.key('personal', world.member))).toBe(204);
    const formerAdmin = await world.join('admin');
    const team = await world.key('team', formerAdmin);
    await world.admin.api.request('PATCH', `/v1/orgs/current/members/${formerAdmin.userId}`, { role: 'member' });
    for (const [api, key] of [
      [member, await world.key('personal')],
      [member, await world.key('team')],
      [world.inOrg(formerAdmin), team],
    ] as const) {
      const refused = await world.refused(api, 'DELETE', `/v1/api-keys/${key.key.id}`);
      expect(refused).toMatchObject({ status: 403, code: 'ADMIN_REQUIRED' });
    }
  });
  it('an API key: nothing; 403 ADMIN_REQUIRED', async () => {
    for (const kind of ['personal', 'team'] as const) {
      const key = await world.key(kind);
      const refused = await world.refused(key.api, 'DELETE', `/v1/api-keys/${key.key.id}`);
      expect(refused).toMatchObject({ status: 403, code: 'ADMIN_REQUIRED' });
    }
  });
});

describe('Endpoints: instances', () => {
  let body: DeployBody;
  let id: string;
  beforeAll(async () => {
    ({ body } = await world.host({ gpus: 8 }));
    ({ id } = await world.running(body));
  });

  it('POST /v1/instances: 201 with the instance object', async () => {
    const answer = await world.admin.api.request<InstanceBody>('POST', '/v1/instances', body);
    expect(answer).toMatchObject({ status: 201, body: { status: 'creating' } });
    await statusIs(world.admin.api, answer.body.id, 'running');
  });
  it('GET /v1/instances: the active organization’s, newest first; destroyed ones only with include_destroyed=true', async () => {
    world.test.clock.advance(10);
    const second = await world.running(body);
    await world.admin.api.delete(`/v1/instances/${second.id}`);
    await statusIs(world.admin.api, second.id, 'destroyed');
    const ids = async (query: string, api = world.admin.api) =>
      (await api.get<{ items: InstanceBody[] }>(`/v1/instances${query}`)).items.map((instance) => instance.id);
    expect(await ids('')).not.toContain(second.id);
    expect(await ids('?include_destroyed=false')).not.toContain(second.id);
    const all = await ids('?include_destroyed=true');
    expect(all.indexOf(second.id)).toBe(0);
    expect(all).toContain(id);
    expect(await ids('', world.inOrg(world.member))).toContain(id);
    expect(await ids('', world.member.api)).toEqual([]);
  });
  it('GET /v1/instances/{id}: unknown id or another organization’s gives 404 INSTANCE_NOT_FOUND', async () => {
    for (const [api, path] of [
      [world.admin.api, NOWHERE],
      [world.stranger.api, id],
    ] as const) {
      const refused = await world.refused(api, 'GET', `/v1/instances/${path}`);
      expect(refused).toMatchObject({ status: 404, code: 'INSTANCE_NOT_FOUND' });
    }
  });
  it('stop, start, DELETE: the instance at stopping, starting, destroying', async () => {
    const { id: other } = await world.running(body);
    expect((await world.admin.api.request<InstanceBody>('POST', `/v1/instances/${other}/stop`)).body.status).toBe(
      'stopping',
    );
    await statusIs(world.admin.api, other, 'stopped');
    expect((await world.admin.api.request<InstanceBody>('POST', `/v1/instances/${other}/start`)).body.status).toBe(
      'starting',
    );
    await statusIs(world.admin.api, other, 'running');
    expect((await world.admin.api.request<InstanceBody>('DELETE', `/v1/instances/${other}`)).body.status).toBe(
      'destroying',
    );
    await statusIs(world.admin.api, other, 'destroyed');
  });
  it('GET logs: {lines}; tail from 1 to 1000, default 200', async () => {
    const agent = world.test.lastAgent;
    agent.print(id, ...Array.from({ length: 1_200 }, (_, index) => `line ${index}`));
    const lines = async (query: string) =>
      (await world.admin.api.get<{ lines: string[] }>(`/v1/instances/${id}/logs${query}`)).lines;
    await eventually('the log', async () => (await lines('?tail=1000')).length === 1_000);
    expect((await lines('?tail=1000')).at(-1)).toBe('line 1199');
    expect(await lines('?tail=1')).toEqual(['line 1199']);
    expect(await lines('')).toHaveLength(200);
  });
  it('logs rules: empty until the workload has run for the first time', async () => {
    const { agent, body: other } = await world.host();
    agent.automatic = false;
    const created = await world.admin.api.post<InstanceBody>('/v1/instances', other);
    expect(await world.admin.api.get(`/v1/instances/${created.id}/logs`)).toEqual({ lines: [] });
  });
  it.each(['0', '1001', '-1', 'x', '1.5', ''])('logs rules: a tail of %j is rejected with 422', async (tail) => {
    const refused = await world.refused(world.admin.api, 'GET', `/v1/instances/${id}/logs?tail=${tail}`);
    expect(refused.status).toBe(422);
  });
});

describe('Endpoints: deploy rules', () => {
  it('1. the balance must cover one hour of the whole burn: what runs and comes up in full, the disk of what is stopped', async () => {
    const { agent, body } = await world.host({ gpus: 8 });
    const renter = await world.test.renter(10_000_000);
    const hour = 1_000_000;
    const disk = 10 * 100;
    await world.running(body, renter.api);
    await world.stopped(body, renter.api);
    agent.automatic = false;
    await renter.api.post('/v1/instances', body);
    const burn = 2 * (hour + disk) + disk;
    expect(await renter.api.get('/v1/orgs/current')).toMatchObject({ burn_per_hour_micro: burn });
    const dear = await world.test.offer(agent, 1, 8_000_000);
    const refused = await world.refused(renter.api, 'POST', '/v1/instances', { ...body, offer_id: dear });
    expect(refused).toMatchObject({
      status: 402,
      code: 'INSUFFICIENT_BALANCE',
      balance_micro: 10_000_000,
      required_micro: burn + 8_000_000 + disk,
    });
    const affordable = await world.test.offer(agent, 1, 10_000_000 - burn - disk);
    expect((await renter.api.request('POST', '/v1/instances', { ...body, offer_id: affordable })).status).toBe(201);
  });
  it('2. nothing is reserved or held back by the check', async () => {
    const { body } = await world.host();
    const renter = await world.test.renter(2_000_000);
    await world.running(body, renter.api);
    expect(await renter.api.get('/v1/orgs/current')).toMatchObject({ balance_micro: 2_000_000 });
  });
  it('3. every refusal leaves no instance behind and charges nothing', async () => {
    const { body } = await world.host();
    await world.refused(world.admin.api, 'POST', '/v1/instances', { ...body, disk_gb: 20_000 });
  });
  it('4. offers on machines not registered are omitted; OFFER_NOT_PINNABLE arises for a saved offer id', async () => {
    const { agent, body } = await world.host();
    expect((await world.test.operator.request('DELETE', `/v1/operator/machines/${agent.hostId}`)).status).toBe(204);
    const { items } = await world.admin.api.get<{ items: { id: string }[] }>('/v1/offers');
    expect(items.map(({ id }) => id)).not.toContain(body.offer_id);
    const refused = await world.refused(world.admin.api, 'POST', '/v1/instances', body);
    expect(refused).toMatchObject({ status: 409, code: 'OFFER_NOT_PINNABLE' });
  });
});

describe('Endpoints: other endpoints', () => {
  let team: Key;
  let hash: string;
  let offer: string;
  beforeAll(async () => {
    team = await world.key('team');
    offer = (await world.host({ gpus: 2 })).body.offer_id;
    hash = (await world.admin.api.get<{ hash_id: string }>(`/v1/templates/${world.templateId}`)).hash_id;
  });
  const both = () => [world.admin.api, team.api];

  it('GET /v1/offers with gpu_model, num_gpus, sort=price_asc; GET /v1/offers/{id}: session or API key', async () => {
    const cheap = await world.test.offer(world.test.lastAgent, 2, 1);
    for (const api of both()) {
      const { items } = await api.get<{ items: { id: string; price_per_hour_micro: number }[] }>(
        '/v1/offers?gpu_model=Fake%20GPU&sort=price_asc',
      );
      expect(items[0]?.id).toBe(cheap);
      const prices = items.map(({ price_per_hour_micro }) => price_per_hour_micro);
      expect(prices).toEqual([...prices].sort((a, b) => a - b));
      const two = await api.get<{ items: { id: string }[] }>('/v1/offers?num_gpus=2');
      expect(two.items.map(({ id }) => id)).toEqual([cheap]);
      expect((await api.get<{ items: unknown[] }>('/v1/offers?gpu_model=none')).items).toEqual([]);
      expect(await api.get(`/v1/offers/${offer}`)).toMatchObject({
        id: offer,
        state: 'available',
        machine: { disk_gb: 1_000 },
      });
    }
  });
  it('GET /v1/catalog/status: session or API key', async () => {
    for (const api of both()) {
      const { items } = await api.get<{ items: { gpu_model: string; gpus_free: number }[] }>('/v1/catalog/status');
      expect(items[0]).toMatchObject({ gpu_model: 'Fake GPU', lowest_price_per_hour_micro: 1 });
    }
  });
  it('GET /v1/templates with tab=recommended, mode=ssh; by id; by hash; duplicate: session or API key', async () => {
    const recommended = await world.test.template({ name: 'best', recommended: true });
    const jupyter = await world.test.template({ name: 'notebook', recommended: true, mode: ['jupyter'] });
    for (const api of both()) {
      const { items } = await api.get<{ items: { id: string }[] }>('/v1/templates?tab=recommended&mode=ssh');
      expect(items.map(({ id }) => id)).toEqual([recommended]);
      expect(await api.get(`/v1/templates/${jupyter}`)).toMatchObject({ id: jupyter });
      expect(await api.get(`/v1/templates/by-hash/${hash}`)).toMatchObject({ hash_id: hash });
      const copy = await api.request('POST', `/v1/templates/${jupyter}/duplicate`);
      expect(copy).toMatchObject({ status: 201, body: { name: 'notebook', visibility: 'organization' } });
    }
  });
  it('GET /v1/billing/transactions, GET /v1/billing/spend-daily: session or API key', async () => {
    for (const api of both()) {
      const { items } = await api.get<{ items: unknown[] }>('/v1/billing/transactions');
      expect(items).toMatchObject([{ kind: 'credit', amount_micro: 100_000_000 }]);
      expect((await api.get<{ items: unknown[] }>('/v1/billing/spend-daily?days=7')).items).toHaveLength(7);
    }
  });
  it('POST /v1/billing/checkout-session: admin session only', async () => {
    const pay = { amount_micro: 5_000_000 };
    const path = '/v1/billing/checkout-session';
    for (const api of [team.api, world.inOrg(world.member)]) {
      expect(await world.refused(api, 'POST', path, pay)).toMatchObject({ status: 403, code: 'ADMIN_REQUIRED' });
    }
    expect((await world.admin.api.request<{ code: string }>('POST', path, pay)).body.code).not.toBe('ADMIN_REQUIRED');
  });
  it('GET /v1/me, GET and POST /v1/ssh-keys: session only; entries carry id, name, fingerprint', async () => {
    expect(await world.member.api.get('/v1/me')).toMatchObject({ user: { email: world.member.email } });
    const public_key = makePublicKey('-t', 'ecdsa');
    const added = await world.member.api.post<{ id: string }>('/v1/ssh-keys', { name: 'k', public_key });
    const { items } = await world.member.api.get<{ items: unknown[] }>('/v1/ssh-keys');
    expect(items).toContainEqual(
      expect.objectContaining({ id: added.id, name: 'k', fingerprint: expect.stringMatching(/^SHA256:/) as string }),
    );
    for (const [method, path] of [
      ['GET', '/v1/me'],
      ['GET', '/v1/ssh-keys'],
      ['POST', '/v1/ssh-keys'],
    ] as const) {
      expect(await world.refused(team.api, method, path)).toMatchObject({ status: 401, code: 'TOKEN_INVALID' });
    }
  });
  it('invites and member management under /v1/orgs/current: admin session only', async () => {
    for (const [method, path, sent] of MANAGEMENT(world.member.userId)) {
      for (const api of [team.api, world.inOrg(world.member)]) {
        expect(await world.refused(api, method, path, sent)).toMatchObject({ status: 403, code: 'ADMIN_REQUIRED' });
      }
      expect((await world.admin.api.request<{ code?: string } | null>(method, path, sent)).body?.code).not.toBe(
        'ADMIN_REQUIRED',
      );
    }
  });
});

const MANAGEMENT = (userId: string) =>
  [
    ['GET', '/v1/orgs/current/members', undefined],
    ['PATCH', `/v1/orgs/current/members/${userId}`, { role: 'member' }],
    ['DELETE', `/v1/orgs/current/members/${NOWHERE}`, undefined],
    ['GET', '/v1/orgs/current/invites', undefined],
    ['POST', '/v1/orgs/current/invites', { email: 'guest@example.com' }],
    ['DELETE', `/v1/orgs/current/invites/${NOWHERE}`, undefined],
  ] as const;
