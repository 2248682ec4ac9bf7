import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { World, type Refused } from '../contract/world.js';

interface User {
  id: string;
  email: string;
  is_operator: boolean;
}

let world: World;
beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.stop());

const operator = () => world.test.operator;
const remove = (id: string) => operator().request<Refused | null>('DELETE', `/v1/operator/users/${id}`);
const usersOf = async (organizationId: string) =>
  (await operator().get<{ items: User[] }>(`/v1/operator/organizations/${organizationId}/users`)).items;
const find = async (email: string) =>
  (await operator().get<{ items: User[] }>(`/v1/operator/users?email=${encodeURIComponent(email)}`)).items;
const account = (email: string) => ({ email, password: 'a fine password', name: 'Somebody' });

describe('operators see who rents', () => {
  it('all users, one by an address in whatever case, and those of an organization with their roles', async () => {
    const { admin, member } = world;
    const { items } = await operator().get<{ items: User[] }>('/v1/operator/users');
    expect(items).toContainEqual(expect.objectContaining({ email: admin.email, is_operator: false }));
    expect(items).toContainEqual(expect.objectContaining({ email: 'operator@example.com', is_operator: true }));
    expect(await find(admin.email.toUpperCase())).toMatchObject([{ id: admin.userId }]);
    expect(await find('nobody@example.com')).toEqual([]);
    expect(await usersOf(admin.organizationId)).toMatchObject([
      { id: admin.userId, email: admin.email, role: 'admin' },
      { id: member.userId, email: member.email, role: 'member' },
    ]);
  });

  it('without anything that a user proves themselves by', async () => {
    expect(JSON.stringify(await operator().get('/v1/operator/users'))).not.toMatch(/scrypt|password/);
  });
});

describe('an operator removes a user', () => {
  it('whose sessions, keys and memberships end at once, and whose address is free again', async () => {
    const member = await world.join('admin');
    const keys = [await world.key('personal', member), await world.key('team', member)];
    expect((await remove(member.userId)).status).toBe(204);
    for (const api of [member.api, ...keys.map((key) => key.api)]) {
      expect(await api.request('GET', '/v1/instances')).toMatchObject({ status: 401, body: { code: 'TOKEN_INVALID' } });
    }
    expect((await usersOf(world.admin.organizationId)).map(({ id }) => id)).not.toContain(member.userId);
    expect(await find(member.email)).toEqual([]);
    const { items } = await operator().get<{ items: User[] }>('/v1/operator/users');
    expect(items.map(({ id }) => id)).not.toContain(member.userId);
    const signIn = { email: member.email, password: 'a renter password' };
    expect((await world.test.api.request('POST', '/v1/auth/sign-in', signIn)).status).toBe(401);
    expect((await world.test.api.request('POST', '/v1/auth/sign-up', account(member.email))).status).toBe(201);
    expect(await remove(member.userId)).toMatchObject({ status: 404, body: { code: 'USER_NOT_FOUND' } });
    expect(await operator().get('/v1/operator/audit-log?limit=1')).toMatchObject({
      items: [{ action: 'user.remove', subject: member.userId, details: { email: member.email } }],
    });
  });

  it('and what runs goes on, and says that its access should be replaced', async () => {
    const member = await world.join();
    const { body } = await world.host();
    const { id } = await world.running(body, world.inOrg(member));
    await remove(member.userId);
    expect(await world.admin.api.get(`/v1/instances/${id}`)).toMatchObject({ status: 'running' });
    const { items } = await world.admin.api.get<{ items: { kind: string }[] }>(`/v1/instances/${id}/events`);
    expect(items.map(({ kind }) => kind)).toContain('member_left');
    expect(await operator().get(`/v1/operator/instances?limit=1`)).toMatchObject({
      items: [{ id, deployed_by: member.email, deployed_by_email: null }],
    });
  });

  it('but not the last admin of an organization that has instances: the refusal says what to do', async () => {
    const renter = await world.test.renter();
    const { body } = await world.host();
    const { id } = await world.running(body, renter.api);
    const before = world.test.dump();
    expect(await remove(renter.userId)).toMatchObject({
      status: 409,
      body: { code: 'LAST_ADMIN', message: expect.stringMatching(/1 instance.*: destroy them first/) as string },
    });
    expect(world.test.dump()).toEqual(before);
    await renter.api.delete(`/v1/instances/${id}`);
    await expect
      .poll(async () => (await renter.api.get<{ status: string }>(`/v1/instances/${id}`)).status)
      .toBe('destroyed');
    expect((await remove(renter.userId)).status).toBe(204);
    expect(await usersOf(renter.organizationId)).toEqual([]);
  });

  it('nor themselves, nor somebody who is nobody', async () => {
    const [self] = await find('operator@example.com');
    const before = world.test.dump();
    expect(await remove(self?.id ?? '')).toMatchObject({ status: 409, body: { code: 'OWN_ACCOUNT' } });
    expect(await remove('nobody')).toMatchObject({ status: 404, body: { code: 'USER_NOT_FOUND' } });
    expect(world.test.dump()).toEqual(before);
  });

  it('also another operator, who is none any more', async () => {
    await world.test.core.createOperator('second@example.com', 'operator password');
    const session = { email: 'second@example.com', password: 'operator password' };
    const { token } = await world.test.api.post<{ token: string }>('/v1/auth/sign-in', session);
    const second = world.test.api.as(token);
    expect((await second.request('GET', '/v1/operator/users')).status).toBe(200);
    const [found] = await find('second@example.com');
    expect((await remove(found?.id ?? '')).status).toBe(204);
    expect((await second.request('GET', '/v1/operator/users')).status).toBe(401);
  });
});
