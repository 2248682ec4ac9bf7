import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NOWHERE, World } from './world.js';

let world: World;
beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.stop());

describe('Errors: API keys and credentials', () => {
  it('403 ADMIN_REQUIRED: an API key creates or revokes, checks out, manages members; a non-admin creates a team key', async () => {
    const { api, key } = await world.key();
    for (const [method, path, sent] of [
      ['POST', '/v1/api-keys', { name: 'k' }],
      ['DELETE', `/v1/api-keys/${key.id}`, undefined],
      ['POST', '/v1/billing/checkout-session', { amount_micro: 5_000_000 }],
      ['GET', '/v1/orgs/current/members', undefined],
    ] as const) {
      expect(await world.refused(api, method, path, sent)).toMatchObject({ status: 403, code: 'ADMIN_REQUIRED' });
    }
    const team = { name: 'k', kind: 'team' };
    const member = await world.refused(world.inOrg(world.member), 'POST', '/v1/api-keys', team);
    expect(member).toMatchObject({ status: 403, code: 'ADMIN_REQUIRED' });
  });
  it('403 ORG_MISMATCH: X-Org-Id names a different organization', async () => {
    const { api } = await world.key();
    const refused = await world.refused(api.in(world.stranger.organizationId), 'GET', '/v1/offers');
    expect(refused).toMatchObject({ status: 403, code: 'ORG_MISMATCH' });
  });
  it('401 TOKEN_INVALID: an API key on a session-only account endpoint', async () => {
    const { api } = await world.key();
    expect(await world.refused(api, 'GET', '/v1/me')).toMatchObject({ status: 401, code: 'TOKEN_INVALID' });
  });
  it.each([undefined, '', 'nothing', `svc_${'0'.repeat(48)}`, `ses_${'0'.repeat(64)}`, 'svc_', 'x'.repeat(5_000)])(
    '401 TOKEN_INVALID: %j is no credential',
    async (token) => {
      const refused = await world.refused(world.test.api.as(token), 'GET', '/v1/offers');
      expect(refused).toMatchObject({ status: 401, code: 'TOKEN_INVALID' });
    },
  );
  it('404 API_KEY_NOT_FOUND: revoking an unknown, already revoked, or other organization’s key', async () => {
    const foreign = await world.stranger.api.post<{ key: { id: string } }>('/v1/api-keys', { name: 'theirs' });
    const { key } = await world.key();
    await world.admin.api.delete(`/v1/api-keys/${key.id}`);
    for (const id of [NOWHERE, key.id, foreign.key.id]) {
      const refused = await world.refused(world.admin.api, 'DELETE', `/v1/api-keys/${id}`);
      expect(refused).toMatchObject({ status: 404, code: 'API_KEY_NOT_FOUND' });
    }
  });
});
