import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ApiClient } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { ROUTES, type Route } from '../contract/routes.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import { EventReader } from '../harness/event-reader.js';
import { addApp, nextCode } from '../harness/second-factors.js';

const PASSWORD = 'a renter password';

let test: TestControlPlane;
let admin: Renter;
let member: Renter;
beforeAll(async () => {
  test = await TestControlPlane.start();
});
afterAll(() => test.stop());
beforeEach(async () => {
  admin = await test.renter(0);
  member = await test.renter(0);
  const invite = { email: member.email };
  const { token } = await admin.api.post<{ token: string }>('/v1/orgs/current/invites', invite);
  await member.api.post(`/v1/invites/${token}/accept`);
});

const REQUIREMENT = '/v1/orgs/current/second-factor';
const demand = (required: boolean, api = admin.api) =>
  api.request<{ required: boolean }>('PUT', REQUIREMENT, { required });
const factorRequired = { status: 403, body: { code: 'SECOND_FACTOR_REQUIRED' } };
const inOrg = () => member.api.in(admin.organizationId);
const instances = (api: ApiClient) => api.request('GET', '/v1/instances');

const operations = (isMeant: (route: Route) => boolean) => ROUTES.filter(isMeant).map(({ operation }) => operation);

/** The operations that refuse a client for want of a second factor. */
async function closedTo(api: ApiClient): Promise<string[]> {
  const closed = [];
  // It would end the session.
  for (const { operation, body } of ROUTES.filter((route) => route.operation !== 'POST /v1/auth/sign-out')) {
    const [method = '', path = ''] = operation.split(' ');
    const { body: answer } = await api.request<{ code?: string } | null>(method, path.replace('{id}', 'none'), body);
    if (answer?.code === 'SECOND_FACTOR_REQUIRED') closed.push(operation);
  }
  return closed;
}

describe('an organization that demands a second factor', () => {
  it('is closed to members without one at once, but to their own accounts and API keys', async () => {
    const { secret } = await inOrg().post<{ secret: string }>('/v1/api-keys', { name: 'k' });
    expect((await instances(inOrg())).status).toBe(200);
    await addApp(test, admin.api);
    expect((await demand(true)).body).toMatchObject({ required: true });
    expect(await instances(inOrg())).toMatchObject(factorRequired);
    for (const path of ['/v1/orgs/current', '/v1/events', '/v1/billing/transactions', REQUIREMENT])
      expect(await inOrg().request('GET', path), path).toMatchObject(factorRequired);
    expect((await instances(test.api.as(secret))).status).toBe(200);
    expect((await instances(admin.api)).status).toBe(200);
    expect((await instances(member.api.in(member.organizationId))).status).toBe(200);
    for (const path of ['/v1/me', '/v1/me/second-factors', '/v1/auth/sessions', '/v1/ssh-keys'])
      expect((await inOrg().request('GET', path)).status, path).toBe(200);
    await addApp(test, inOrg());
    expect((await instances(inOrg())).status).toBe(200);
  });

  it('is closed to sessions that have not given the factor, until they prove it', async () => {
    const session = { email: member.email, password: PASSWORD };
    const { token } = await test.api.post<{ token: string }>('/v1/auth/sign-in', session);
    const older = test.api.as(token).in(admin.organizationId);
    const app = await addApp(test, member.api);
    await addApp(test, admin.api);
    await demand(true);
    expect((await instances(inOrg())).status).toBe(200);
    expect(await instances(older)).toMatchObject(factorRequired);
    await older.post('/v1/me/proof', { password: PASSWORD, code: nextCode(test, app) });
    expect((await instances(older)).status).toBe(200);
    await member.api.delete(`/v1/me/second-factors/${app.id}`);
    expect(await instances(older)).toMatchObject(factorRequired);
    expect(await instances(inOrg())).toMatchObject(factorRequired);
    expect((await demand(false)).body).toMatchObject({ required: false });
    expect((await instances(older)).status).toBe(200);
  });

  it('is closed to their sessions at every route that acts for it, and at no other', async () => {
    await admin.api.request('PATCH', `/v1/orgs/current/members/${member.userId}`, { role: 'admin' });
    await addApp(test, admin.api);
    await demand(true);
    const closed = await closedTo(inOrg());
    expect(closed).toEqual(operations(({ access }) => !['public', 'account', 'operator'].includes(access)));
    expect(closed.length).toBeGreaterThan(50);
  });

  it('is not made by an admin without one, nor by a member', async () => {
    expect(await demand(true)).toMatchObject(factorRequired);
    expect(await demand(true, inOrg())).toMatchObject({ status: 403, body: { code: 'ADMIN_REQUIRED' } });
    expect((await demand(false)).body).toMatchObject({ required: false });
  });

  it('ends the streams of events of its members without one', async () => {
    await addApp(test, admin.api);
    const reader = await EventReader.open(`${test.url}/v1/events`, member.api.token, {
      'X-Org-Id': admin.organizationId,
    });
    await demand(true);
    await eventually('the stream to end', () => reader.isOver);
  });
});

describe('a control plane that demands a second factor of its operators', () => {
  it('is closed to operators without one, who can add it', async () => {
    const own = await TestControlPlane.start();
    await own.restart({ operatorsNeedFactor: true });
    expect(await own.operator.request('GET', '/v1/operator/users')).toMatchObject(factorRequired);
    expect(await own.operator.request('GET', '/v1/operator/nothing')).toMatchObject(factorRequired);
    expect((await own.operator.request('GET', '/v1/me')).status).toBe(200);
    expect(await closedTo(own.operator)).toEqual(operations(({ access }) => access === 'operator'));
    await addApp(own, own.operator);
    expect((await own.operator.request('GET', '/v1/operator/users')).status).toBe(200);
    const { api } = await own.renter(0);
    expect(await api.request('GET', '/v1/operator/users')).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
    await own.stop();
  });
});
