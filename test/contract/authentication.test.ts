import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { statusIs } from '../harness/control-plane.js';
import { makePublicKey } from '../harness/keys.js';
import { NOWHERE, World, type ApiKeyBody, type DeployBody, type Key } from './world.js';

let world: World;
beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.stop());

describe('Authentication: X-Org-Id', () => {
  it('names the organization in which a session acts', async () => {
    const inOrg = world.inOrg(world.member);
    expect(await inOrg.get('/v1/orgs/current')).toMatchObject({ id: world.admin.organizationId });
    expect(await world.member.api.get('/v1/orgs/current')).toMatchObject({ id: world.member.organizationId });
  });
  it('of another organization than the key’s own fails any request with 403 ORG_MISMATCH, before any other refusal', async () => {
    for (const kind of ['personal', 'team'] as const) {
      const { api } = await world.key(kind);
      for (const [method, path] of [
        ['GET', '/v1/instances'],
        ['GET', `/v1/instances/${NOWHERE}`],
        ['POST', '/v1/instances'],
        ['GET', '/v1/me'],
        ['POST', '/v1/api-keys'],
        ['POST', '/v1/billing/checkout-session'],
      ] as const) {
        for (const other of [world.stranger.organizationId, NOWHERE, 'nothing']) {
          const refused = await world.refused(api.in(other), method, path);
          expect(refused).toMatchObject({ status: 403, code: 'ORG_MISMATCH' });
        }
      }
      expect((await api.in(world.admin.organizationId).request('GET', '/v1/instances')).status).toBe(200);
    }
  });
  it('of an organization that a session’s user does not belong to: 403 ORG_MISMATCH', async () => {
    const refused = await world.refused(world.stranger.api.in(world.admin.organizationId), 'GET', '/v1/instances');
    expect(refused).toMatchObject({ status: 403, code: 'ORG_MISMATCH' });
  });
});

describe('Authentication: an API key acts as a member, regardless of its creator’s role', () => {
  it.each(['personal', 'team'] as const)('%s: an admin’s key is no admin', async (kind) => {
    const { api } = await world.key(kind, world.admin);
    const refused = await world.refused(api, 'PATCH', '/v1/orgs/current', { name: 'mine' });
    expect(refused).toMatchObject({ status: 403, code: 'ADMIN_REQUIRED' });
  });
});

describe.each(['personal', 'team'] as const)('Authentication: requests with a %s API key', (kind) => {
  let key: Key;
  let body: DeployBody;
  beforeAll(async () => {
    key = await world.key(kind);
    ({ body } = await world.host({ gpus: 4 }));
  });

  it('offers, catalog status, templates (list, get, by-hash, duplicate): allowed', async () => {
    const { hash_id } = await world.admin.api.get<{ hash_id: string }>(`/v1/templates/${world.templateId}`);
    for (const path of [
      '/v1/offers',
      `/v1/offers/${body.offer_id}`,
      '/v1/catalog/status',
      '/v1/templates',
      `/v1/templates/${world.templateId}`,
      `/v1/templates/by-hash/${hash_id}`,
    ]) {
      expect((await key.api.request('GET', path)).status, path).toBe(200);
    }
    expect((await key.api.request('POST', `/v1/templates/${world.templateId}/duplicate`)).status).toBe(201);
  });
  it('POST /v1/instances, stop, start, DELETE, logs, list, get: allowed', async () => {
    const { id } = await world.running(body, key.api);
    expect((await key.api.request('GET', '/v1/instances')).status).toBe(200);
    expect((await key.api.request('GET', `/v1/instances/${id}/logs`)).status).toBe(200);
    expect((await key.api.request('POST', `/v1/instances/${id}/stop`)).status).toBe(202);
    await statusIs(key.api, id, 'stopped');
    expect((await key.api.request('POST', `/v1/instances/${id}/start`)).status).toBe(202);
    await statusIs(key.api, id, 'running');
    expect((await key.api.request('DELETE', `/v1/instances/${id}`)).status).toBe(202);
    await statusIs(key.api, id, 'destroyed');
  });
  it('… also on what somebody else of the organization has deployed', async () => {
    const { id } = await world.running(body, world.inOrg(world.member));
    expect((await key.api.request<InstanceBody>('POST', `/v1/instances/${id}/stop`)).status).toBe(202);
    await statusIs(key.api, id, 'stopped');
  });
  it.each(['/v1/billing/transactions', '/v1/billing/spend-daily', '/v1/api-keys'])('GET %s: allowed', async (path) => {
    expect((await key.api.request('GET', path)).status).toBe(200);
  });
  it.each([
    ['GET', '/v1/me'],
    ['GET', '/v1/ssh-keys'],
    ['POST', '/v1/ssh-keys'],
  ])('%s %s: 401 TOKEN_INVALID', async (method, path) => {
    expect(await world.refused(key.api, method, path)).toMatchObject({ status: 401, code: 'TOKEN_INVALID' });
  });
  it.each([
    ['POST', '/v1/billing/checkout-session'],
    ['GET', '/v1/orgs/current/invites'],
    ['POST', '/v1/orgs/current/invites'],
    ['DELETE', `/v1/orgs/current/invites/${NOWHERE}`],
    ['GET', '/v1/orgs/current/members'],
    ['PATCH', `/v1/orgs/current/members/${NOWHERE}`],
    ['DELETE', `/v1/orgs/current/members/${NOWHERE}`],
    ['POST', '/v1/api-keys'],
    ['DELETE', `/v1/api-keys/${NOWHERE}`],
  ])('%s %s: 403 ADMIN_REQUIRED', async (method, path) => {
    expect(await world.refused(key.api, method, path)).toMatchObject({ status: 403, code: 'ADMIN_REQUIRED' });
  });
});

describe('Authentication: consequences', () => {
  it('an API key cannot top up the balance', async () => {
    const { api } = await world.key('team');
    const refused = await world.refused(api, 'POST', '/v1/billing/checkout-session', { amount_micro: 5_000_000 });
    expect(refused.code).toBe('ADMIN_REQUIRED');
  });
  it('an API key cannot add SSH keys', async () => {
    const { api } = await world.key('team');
    const added = { name: 'k', public_key: makePublicKey('-t', 'ed25519') };
    expect((await world.refused(api, 'POST', '/v1/ssh-keys', added)).code).toBe('TOKEN_INVALID');
  });
  it('when a key’s creator leaves: the personal key stops, the team key works, creator_is_member is false', async () => {
    const colleague = await world.join('admin');
    const [personal, team] = [await world.key('personal', colleague), await world.key('team', colleague)];
    await world.admin.api.delete(`/v1/orgs/current/members/${colleague.userId}`);
    expect(await world.refused(personal.api, 'GET', '/v1/offers')).toMatchObject({
      status: 401,
      code: 'TOKEN_INVALID',
    });
    const { items } = await team.api.get<{ items: ApiKeyBody[] }>('/v1/api-keys');
    expect(items.find(({ id }) => id === team.key.id)).toMatchObject({ creator_is_member: false });
  });
  it('a creator who rejoins is a member again, but the revoked key stays revoked', async () => {
    const colleague = await world.join('admin');
    const [personal, team] = [await world.key('personal', colleague), await world.key('team', colleague)];
    await world.leave(colleague);
    const { token } = await world.admin.api.post<{ token: string }>('/v1/orgs/current/invites', {
      email: colleague.email,
    });
    await colleague.api.post(`/v1/invites/${token}/accept`);
    const { items } = await team.api.get<{ items: ApiKeyBody[] }>('/v1/api-keys');
    expect(items.find(({ id }) => id === team.key.id)).toMatchObject({ creator_is_member: true });
    expect((await personal.api.request('GET', '/v1/offers')).status).toBe(401);
  });
  it('revoked keys stop working on their next request', async () => {
    const key = await world.key();
    expect((await key.api.request('GET', '/v1/offers')).status).toBe(200);
    await world.admin.api.delete(`/v1/api-keys/${key.key.id}`);
    expect((await key.api.request('GET', '/v1/offers')).status).toBe(401);
  });
});
