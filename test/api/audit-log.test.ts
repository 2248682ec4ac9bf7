import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ACTS_KEPT, ACTS_KEPT_MS, recordAct } from '../../control-plane/services/system/acts.js';
import { MOST_SCANNED } from '../../control-plane/services/system/log-pages.js';
import { userActor } from '../../control-plane/domain/act.js';
import { query } from '../../control-plane/store/sql.js';
import { World } from '../contract/world.js';
import { setCompany } from '../harness/companies.js';
import { DAY_MS, HOUR_MS, makePoor } from '../harness/poor.js';
import { StripeDouble } from '../harness/stripe-double.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';

interface Entry {
  id: number;
  at: string;
  actor_kind: string;
  actor_id: string | null;
  actor_name: string;
  address: string | null;
  action: string;
  object: string;
  reason: string | null;
}
interface Page {
  items: Entry[];
  next_cursor: string | null;
}

let world: World;
beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.stop());

const read = (search = '', { api } = world.admin) => api.get<Page>(`/v1/audit-log${search}`);
const newest = async (renter = world.admin) => (await read('?limit=1', renter)).items[0];

/** Writes acts of a user, without a request. */
function write(renter: Renter, count: number, number?: number, at?: number): void {
  const { store } = world.test.core.platform;
  const actor = userActor(renter.userId, renter.email);
  store.transact((tx) => {
    for (let index = 0; index < count; index++)
      recordAct(tx, renter.organizationId, actor, 'instance.update', 'instances/x');
    const last = query
      .selectFrom('organization_acts')
      .select('number')
      .where('organization_id', '=', renter.organizationId);
    const newestNumber = tx.get(last.orderBy('number', 'desc').limit(1))?.number ?? 0;
    const changed = query.updateTable('organization_acts').where('organization_id', '=', renter.organizationId);
    if (number !== undefined) tx.run(changed.set({ number }).where('number', '=', newestNumber));
    if (at !== undefined) tx.run(changed.set({ at }));
  });
}

describe('the audit log of an organization', () => {
  it('says who has done what to what, when and from where', async () => {
    const { admin, member } = world;
    await admin.api.request('PATCH', '/v1/orgs/current', { name: 'Renamed' });
    expect(await newest()).toEqual({
      id: expect.any(Number) as number,
      at: new Date(world.test.clock.now()).toISOString(),
      actor_kind: 'user',
      actor_id: admin.userId,
      actor_name: admin.email,
      address: '127.0.0.1',
      action: 'organization.rename',
      object: `orgs/${admin.organizationId}`,
      reason: null,
    });
    const key = await world.key('team', admin, 'nightly');
    const { body } = await world.host();
    const { id } = await world.running(body, key.api);
    expect(await newest()).toMatchObject({
      actor_kind: 'api_key',
      actor_id: key.key.id,
      actor_name: `nightly (${key.key.prefix}…)`,
      action: 'instance.deploy',
      object: `instances/${id}`,
    });
    await world.inOrg(member).post(`/v1/instances/${id}/stop`);
    expect(await newest()).toMatchObject({ actor_name: member.email, action: 'instance.stop' });
  });

  it('has the acts of operators with their reason, and not which operator it was', async () => {
    const { admin } = world;
    const { body } = await world.host();
    const { id } = await world.running(body);
    await world.test.operator.post(`/v1/operator/instances/${id}/stop`, { reason: 'it mines coins' });
    expect(await newest()).toMatchObject({
      actor_kind: 'operator',
      actor_id: null,
      actor_name: 'operator',
      action: 'instance.stop',
      object: `instances/${id}`,
      reason: 'it mines coins',
      address: null,
    });
    const credit = { amount_micro: 5, reason: 'sorry' };
    await world.test.operator.post(`/v1/operator/organizations/${admin.organizationId}/credits`, credit);
    expect(await newest()).toMatchObject({ actor_kind: 'operator', action: 'credit.grant', reason: 'sorry' });
    const template = await admin.api.post<{ id: string }>('/v1/templates', { name: 'mine', image: 'i' });
    await world.test.operator.delete(`/v1/operator/templates/${template.id}`);
    expect(await newest()).toMatchObject({ actor_kind: 'operator', action: 'template.deactivate' });
    expect(JSON.stringify(await read())).not.toContain('operator@example.com');
  });

  it('has the domains whose people an operator lets join, and that this ends', async () => {
    const { organizationId } = world.admin;
    const domains = [{ domain: 'acme.example', organization_id: organizationId, role: 'member' }];
    const [assigned, withdrawn] = ['domain.assign', 'domain.withdraw'].map((action) => ({
      actor_kind: 'operator',
      action,
      object: 'domains/acme.example',
    }));
    const before = (await read('?limit=500')).items.length;
    await setCompany(world.test, 'https://acme.example', { domains });
    await setCompany(world.test, 'https://acme.example', { domains: [...domains, { domain: 'other.example' }] });
    const asViewers = { domains: [{ ...domains[0], role: 'viewer' }] };
    await world.test.operator.request('PATCH', '/v1/operator/issuers/acme', asViewers);
    await world.test.operator.request('PATCH', '/v1/operator/issuers/acme', { name: 'Another' });
    await world.test.operator.delete('/v1/operator/issuers/acme');
    const { items } = await read('?limit=500');
    const added = items.slice(0, items.length - before);
    expect(added).toMatchObject([withdrawn, assigned, withdrawn, assigned]);
  });

  it('has what the control plane itself stops, and why', async () => {
    const poor = await makePoor(world.test, world.templateId);
    await poor.pass(3 * HOUR_MS);
    const { items } = await read('?actor_kind=system', poor.renter);
    expect(items).toMatchObject([
      { actor_name: 'control plane', action: 'instance.stop', reason: 'out_of_balance', address: null },
    ]);
  });

  it('has a start, and what is done to webhooks', async () => {
    const { admin } = world;
    const { body } = await world.host();
    const { id } = await world.stopped(body);
    await admin.api.post(`/v1/instances/${id}/start`);
    expect(await newest()).toMatchObject({ action: 'instance.start', object: `instances/${id}`, address: '127.0.0.1' });
    const hook = { url: 'https://hooks.example' };
    const { endpoint } = await admin.api.post<{ endpoint: { id: string } }>('/v1/webhook-endpoints', hook);
    const object = `webhook-endpoints/${endpoint.id}`;
    const delivery = await admin.api.post<{ id: string }>(`/v1/webhook-endpoints/${endpoint.id}/test`);
    expect(await newest()).toMatchObject({ action: 'webhook.test', object });
    await admin.api.post(`/v1/webhook-deliveries/${delivery.id}/replay`);
    expect(await newest()).toMatchObject({ action: 'webhook.replay', object });
    const since = { since: new Date(world.test.clock.now()).toISOString() };
    await admin.api.post(`/v1/webhook-endpoints/${endpoint.id}/replay`, since);
    expect((await read('?limit=2')).items).toMatchObject([{ action: 'webhook.replay' }, { action: 'webhook.replay' }]);
  });

  it('has a sign-up by invitation, and the founder of an organization', async () => {
    const email = 'invited@example.com';
    const { token } = await world.admin.api.post<{ token: string }>('/v1/orgs/current/invites', { email });
    await world.test.api.post('/v1/auth/sign-up', {
      email,
      password: 'a fine password',
      name: 'N',
      invite_token: token,
    });
    expect(await newest()).toMatchObject({ actor_name: email, action: 'invite.accept', address: '127.0.0.1' });
    const founder = await world.test.renter(0);
    expect((await read('', founder)).items).toMatchObject([
      { actor_name: founder.email, action: 'organization.create' },
    ]);
  });

  it('has no secret and nothing of a body', async () => {
    const env = [{ key: 'TOKEN', value: 'a-very-secret-value', secret: true }];
    await world.admin.api.post('/v1/templates', { name: 'a-name-nobody-records', image: 'i', env });
    const { secret } = await world.key();
    const text = JSON.stringify(await read('?limit=500'));
    for (const word of ['a-very-secret-value', 'a-name-nobody-records', secret]) expect(text).not.toContain(word);
  });

  it('is for admins', async () => {
    for (const api of [world.inOrg(world.member), (await world.key()).api])
      expect(await api.request('GET', '/v1/audit-log')).toMatchObject({
        status: 403,
        body: { code: 'ADMIN_REQUIRED' },
      });
    const { items } = await read('', world.stranger);
    expect(items.every(({ actor_id }) => actor_id !== world.admin.userId)).toBe(true);
  });

  it('records nothing of what was refused', async () => {
    const before = await newest();
    expect((await world.admin.api.request('POST', '/v1/instances/nothing/stop')).status).toBe(404);
    expect(await newest()).toEqual(before);
  });
});

describe('a search in the audit log', () => {
  it('finds what was done in a time, by somebody, and of a kind', async () => {
    const renter = await world.test.renter(0);
    const times: number[] = [];
    for (let index = 0; index < 4; index++) {
      world.test.clock.advance(1_000);
      times.push(world.test.clock.now());
      await renter.api.request('PATCH', '/v1/orgs/current', { name: `n${index}` });
    }
    await renter.api.post('/v1/api-keys', { name: 'k' });
    const ids = async (search: string) => (await read(search, renter)).items.map(({ id }) => id);
    const at = (index: number) => new Date(times[index] ?? 0).toISOString();
    const all = await ids('');
    expect(all).toEqual([7, 6, 5, 4, 3, 2, 1].slice(-all.length));
    const renamed = await ids('?action=organization.rename');
    expect(renamed).toHaveLength(4);
    expect(await ids(`?since=${at(1)}&until=${at(3)}`)).toEqual(renamed.slice(1, 3));
    expect(await ids(`?until=${at(0)}&actor_kind=user`)).toHaveLength(1);
    expect(await ids(`?actor_id=${renter.userId}&action=api_key.create`)).toHaveLength(1);
    expect(await ids('?actor_kind=operator')).toEqual([]);
    for (const search of ['?action=x', '?since=yesterday', `?since=${at(1)}&until=${at(0)}`, '?actor_kind=x'])
      expect(await renter.api.request('GET', `/v1/audit-log${search}`), search).toMatchObject({ status: 422 });
  });

  it('looks at 2,000 entries for a page, and goes on from there', async () => {
    const renter = await world.test.renter(0);
    write(renter, MOST_SCANNED + 10);
    const first = await read('?action=organization.create', renter);
    expect(first.items).toEqual([]);
    const second = await read(`?action=organization.create&cursor=${first.next_cursor}`, renter);
    expect(second).toMatchObject({ items: [{ id: 1 }], next_cursor: null });
    const csv = await renter.api.get<string>('/v1/audit-log.csv?action=organization.create');
    expect(csv.trim().split('\n')).toHaveLength(2);
    const whole = await renter.api.get<string>('/v1/audit-log.csv');
    expect(whole.trim().split('\n')).toHaveLength(MOST_SCANNED + 12);
    expect(whole).toContain(`${renter.email},127.0.0.1,organization.create,orgs/${renter.organizationId},`);
  });
});

describe('what is kept', () => {
  it('is at most a million entries of an organization: one more makes the oldest go', async () => {
    const renter = await world.test.renter(0);
    await renter.api.request('PATCH', '/v1/orgs/current', { name: 'two' });
    write(renter, 1, ACTS_KEPT);
    expect((await read('', renter)).items.map(({ id }) => id)).toEqual([ACTS_KEPT, 2, 1]);
    await renter.api.request('PATCH', '/v1/orgs/current', { name: 'three' });
    expect((await read('', renter)).items.map(({ id }) => id)).toEqual([ACTS_KEPT + 1, ACTS_KEPT, 2]);
  });

  it('is 400 days, purged in small parts that do not wait for each other', async () => {
    const renter = await world.test.renter(0);
    write(renter, 1_200);
    world.test.clock.advance(ACTS_KEPT_MS - DAY_MS);
    world.test.advance(2 * 60_000);
    const count = () =>
      world.test.core.platform.store.transact(
        (tx) =>
          tx.all(
            query.selectFrom('organization_acts').select('number').where('organization_id', '=', renter.organizationId),
          ).length,
      );
    expect(count()).toBe(1_201);
    world.test.advance(DAY_MS);
    const counts = [count()];
    for (let second = 0; second < 6; second++) {
      world.test.advance(1_000);
      counts.push(count());
    }
    expect(counts[0]).toBeGreaterThan(600);
    expect(counts.at(-1)).toBe(0);
  });

  it('is not more than 256 characters of anything', () => {
    const { store } = world.test.core.platform;
    const { organizationId } = world.stranger;
    store.transact((tx) => {
      const actor = { kind: 'user' as const, id: 'i', name: 'n'.repeat(10_000), reason: 'r'.repeat(10_000) };
      recordAct(tx, organizationId, actor, 'instance.stop', 'o'.repeat(10_000));
    });
    const rows = query.selectFrom('organization_acts').selectAll().where('organization_id', '=', organizationId);
    const row = store.transact((tx) => tx.get(rows.orderBy('number', 'desc').limit(1)));
    for (const text of [row?.actor_name, row?.reason, row?.object]) expect(text).toHaveLength(256);
  });
});

it('a checkout that was opened is recorded once, and one that was refused is not', async () => {
  const stripe = await StripeDouble.start();
  const test = await TestControlPlane.start({ stripe: stripe.settings });
  try {
    const { api } = await test.renter(0);
    const acts = async () => (await api.get<Page>('/v1/audit-log?action=checkout.create')).items;
    const key = { 'Idempotency-Key': 'one' };
    const amount = { amount_micro: 5_000_000 };
    expect((await api.request('POST', '/v1/billing/checkout-session', amount, key)).status).toBe(201);
    expect((await api.request('POST', '/v1/billing/checkout-session', amount, key)).status).toBe(201);
    expect(await acts()).toMatchObject([{ address: '127.0.0.1', actor_kind: 'user' }]);
  } finally {
    await test.stop();
    await stripe.stop();
  }
});
