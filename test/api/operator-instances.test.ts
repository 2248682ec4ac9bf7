import BetterSqlite3 from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { World, type Refused } from '../contract/world.js';
import { eventually } from '../../scripts/eventually.js';
import { statusIs } from '../harness/control-plane.js';
import { operatedInstances } from '../../control-plane/services/actions/operator-list.js';
import { operatedOffers } from '../../control-plane/services/catalogue/operated-offers.js';
import { newestFirst, restOf } from '../../control-plane/services/system/pages.js';
import { query } from '../../control-plane/store/sql.js';

const REASON = 'it mines coins for others';

let world: World;
beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.stop());

const read = (id: string) => world.admin.api.get<InstanceBody>(`/v1/instances/${id}`);
const stop = (id: string, body: object = { reason: REASON }) =>
  world.test.operator.request<Refused | null>('POST', `/v1/operator/instances/${id}/stop`, body);
const destroy = (id: string, body?: object) =>
  world.test.operator.request<Refused | null>('DELETE', `/v1/operator/instances/${id}`, body);
const events = async (id: string) =>
  (await world.admin.api.get<{ items: { kind: string; message: string }[] }>(`/v1/instances/${id}/events`)).items;
const lastAct = async () =>
  (await world.test.operator.get<{ items: object[] }>('/v1/operator/audit-log?limit=1')).items[0];

describe('an operator', () => {
  it('stops what runs: its renter reads why, keeps the disk, and may start it again', async () => {
    const { body } = await world.host();
    const { id } = await world.running(body);
    expect(await stop(id)).toMatchObject({ status: 202, body: null });
    await statusIs(world.admin.api, id, 'stopped');
    expect(await events(id)).toContainEqual(
      expect.objectContaining({ kind: 'stopped_by_operator', message: `an operator stops this instance: ${REASON}` }),
    );
    expect(await lastAct()).toMatchObject({
      action: 'instance.stop',
      subject: id,
      details: { reason: REASON, organization_id: world.admin.organizationId, status: 'running' },
    });
    await world.admin.api.post(`/v1/instances/${id}/start`);
    await statusIs(world.admin.api, id, 'running');
  });

  it('charges nothing of the stop, as if its renter had asked', async () => {
    const { agent, body } = await world.host();
    const twins = [await world.running(body), await world.running(body)];
    agent.automatic = false;
    await stop(twins[0]?.id ?? '');
    await world.admin.api.post(`/v1/instances/${twins[1]?.id}/stop`);
    world.test.advance(60_000);
    agent.beat();
    const [ours, theirs] = await Promise.all(twins.map(({ id }) => read(id)));
    expect(ours?.spend_micro).toBe(theirs?.spend_micro);
    expect(ours?.status).toBe('stopping');
  });

  it('stops nothing that does not run, and says how it stands', async () => {
    const ids = await world.inEveryStatus();
    for (const [status, id] of Object.entries(ids).filter(([status]) => status !== 'running')) {
      const before = world.test.dump();
      expect((await stop(id)).body, status).toMatchObject({
        code: 'INVALID_STATE',
        message: expect.stringContaining(status) as string,
      });
      expect(world.test.dump()).toEqual(before);
    }
  });

  it('destroys in whatever status, again where it is under way, and not what is destroyed', async () => {
    const ids = await world.inEveryStatus();
    for (const [status, id] of Object.entries(ids).filter(([status]) => status !== 'destroyed')) {
      expect((await destroy(id, { reason: REASON })).status, status).toBe(202);
      expect((await read(id)).status, status).toBe('destroying');
      expect((await events(id))[0], status).toMatchObject({
        kind: 'removed_by_operator',
        message: `an operator destroys this instance: ${REASON}`,
      });
      expect(await lastAct(), status).toMatchObject({
        action: 'instance.remove',
        subject: id,
        details: { reason: REASON, status },
      });
    }
    expect((await destroy(ids['destroyed'] ?? '', { reason: REASON })).body).toMatchObject({ code: 'INVALID_STATE' });
  });

  it('gives a reason of one line for what its renter can still use', async () => {
    const { body } = await world.host();
    const { id } = await world.running(body);
    const before = world.test.dump();
    const refused = [
      destroy(id),
      destroy(id, {}),
      ...['', 'two\nlines', 'x'.repeat(257)].flatMap((reason) => [destroy(id, { reason }), stop(id, { reason })]),
      stop(id, {}),
    ];
    for (const answer of await Promise.all(refused)) {
      expect(answer).toMatchObject({ status: 422, body: { code: 'VALIDATION_FAILED', details: [{ path: 'reason' }] } });
    }
    expect(world.test.dump()).toEqual(before);
  });
});

interface Listed {
  id: string;
  waits_for: { command: string; reason: string; message: string; since: string } | null;
}

async function listed(id: string): Promise<Listed | undefined> {
  const { items } = await world.test.operator.get<{ items: Listed[] }>('/v1/operator/instances');
  return items.find((instance) => instance.id === id);
}
const waitOf = async (id: string) => (await listed(id))?.waits_for;

describe('the list of all instances', () => {
  it('says whose each is, who deployed it, and on which machine', async () => {
    const { agent, body } = await world.host({ gpus: 2 });
    const key = await world.key('team', world.admin, 'nightly');
    const [own, keyed] = [await world.running(body), await world.running(body, key.api)];
    const machine = await world.test.operator.get<{ name: string }>(`/v1/operator/machines/${agent.hostId}`);
    const organization = await world.admin.api.get<{ name: string }>('/v1/orgs/current');
    expect(await listed(own.id)).toMatchObject({
      organization_id: world.admin.organizationId,
      organization_name: organization.name,
      deployed_by: world.admin.email,
      deployed_by_email: world.admin.email,
      machine_id: agent.hostId,
      machine_name: machine.name,
      num_gpus: 1,
      waits_for: null,
    });
    expect(await listed(keyed.id)).toMatchObject({
      deployed_by: expect.stringContaining('nightly') as string,
      deployed_by_email: world.admin.email,
    });
  });

  it('shows those that are asked for, and refuses a value that a filter does not know', async () => {
    const { agent, body } = await world.host({ gpus: 2 });
    const ids = async (search: string) =>
      (await world.test.operator.get<{ items: Listed[] }>(`/v1/operator/instances?${search}`)).items.map(
        ({ id }) => id,
      );
    const up = await world.running(body);
    agent.automatic = false;
    world.test.clock.advance(1);
    const waiting = await world.admin.api.post<InstanceBody>('/v1/instances', body);
    const other = await world.test.renter();
    const [own, here] = [`organization_id=${world.admin.organizationId}`, `machine_id=${agent.hostId}`];
    expect(await ids(`${here}&${own}`)).toEqual([waiting.id, up.id]);
    expect(await ids(`${here}&${own}&waiting=true`)).toEqual([waiting.id]);
    expect(await ids(`${here}&waiting=false`)).toEqual([up.id]);
    expect(await ids(`id=${up.id}`)).toEqual([up.id]);
    expect(await ids(`id=${up.id}&waiting=true`)).toEqual([]);
    expect(await ids(`id=${agent.hostId}`)).toEqual([]);
    expect(await ids(`${here}&status=running`)).toEqual([up.id]);
    expect(await ids(`organization_id=${other.organizationId}`)).toEqual([]);
    const { store } = world.test.core.platform;
    const flawed = query.updateTable('instances').set({ error_code: 'stop_timed_out' }).where('id', '=', up.id);
    store.transact((tx) => tx.run(flawed));
    expect(await ids(`${here}&error_code=stop_timed_out`)).toEqual([up.id]);
    for (const [field, value] of [
      ['status', 'lost'],
      ['id', up.id.slice(0, 8)],
      ['organization_id', 'mine'],
      ['machine_id', 'x'],
      ['waiting', 'perhaps'],
      ['error_code', 'unknown'],
    ])
      expect(await world.test.operator.request('GET', `/v1/operator/instances?${field}=${value}`), field).toMatchObject(
        { status: 422, body: { code: 'VALIDATION_FAILED', details: [{ path: field }] } },
      );
    agent.automatic = true;
    for (const command of agent.held) agent.done(command);
    await statusIs(world.admin.api, waiting.id, 'running');
    await world.admin.api.delete(`/v1/instances/${up.id}`);
    await statusIs(world.admin.api, up.id, 'destroyed');
    expect([await ids(`id=${up.id}`), await ids(here)]).toEqual([[up.id], [waiting.id]]);
  });

  it('says what is not answered, what is under way and how far, and what its host is not there for', async () => {
    const { agent, body } = await world.host({ gpus: 2, automatic: false });
    const { id } = await world.admin.api.post<InstanceBody>('/v1/instances', body);
    const command = await eventually('the provision', () => agent.held.find(({ instanceId }) => instanceId === id));
    expect(await waitOf(id)).toMatchObject({ command: 'provision', reason: 'not_answered' });
    agent.accept(command);
    agent.say({ progress: { instanceId: id, kind: 'pulling', message: 'pulling test:1: 40 %' } });
    await eventually('how far it is', async () => (await waitOf(id))?.message === 'pulling test:1: 40 %');
    expect(await waitOf(id)).toMatchObject({ command: 'provision', reason: 'under_way' });
    agent.beat({ dockerAvailable: false });
    await eventually('Docker to be down', async () => (await waitOf(id))?.reason === 'docker_down');
    agent.disconnect();
    await eventually('the host to be away', async () => (await waitOf(id))?.reason === 'host_away');
    await agent.connect();
    agent.done(command);
    await statusIs(world.admin.api, id, 'running');
    expect(await waitOf(id)).toBeNull();
  });
});

describe('pages of the list', () => {
  async function pages(search: string): Promise<Listed[]> {
    const items: Listed[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const page: { items: Listed[]; next_cursor: string | null } = await world.test.operator.get(
        `/v1/operator/instances?${search}${cursor && `&cursor=${cursor}`}`,
      );
      items.push(...page.items);
      cursor = page.next_cursor;
    }
    return items;
  }

  it('with and without those that wait are together all of them, in the same order', async () => {
    const { agent, body } = await world.host({ gpus: 3 });
    const { api } = await world.test.renter();
    await world.running(body, api);
    agent.automatic = false;
    for (let count = 0; count < 2; count++) {
      world.test.clock.advance(1);
      await api.post<InstanceBody>('/v1/instances', body);
    }
    const all = await pages('limit=200');
    const waiting = all.filter(({ waits_for }) => waits_for !== null);
    expect(waiting.length).toBeGreaterThan(1);
    expect(await pages('waiting=true&limit=1')).toEqual(waiting);
    expect(await pages('waiting=false&limit=1')).toEqual(all.filter(({ waits_for }) => waits_for === null));
    for (const command of agent.held) agent.done(command);
  });

  it.each([
    [{}, 'SCAN instances USING INDEX instances_live_by_age'],
    [{ status: 'running' }, 'SEARCH instances USING INDEX instances_live_by_status_and_age (status=?)'],
    [{ error_code: 'disk_gone' }, 'SEARCH instances USING INDEX instances_with_error (error_code=?)'],
    [{ waiting: true }, 'SEARCH commands USING INDEX commands_awaited (instance_created_at>?)'],
    [{ waiting: true, status: 'running' }, 'SEARCH commands USING INDEX commands_awaited (instance_created_at>?)'],
    [{ waiting: true, machine_id: 'm' }, 'SEARCH instances USING INDEX instances_live_by_machine (machine_id=?)'],
    [{ status: 'running', machine_id: 'm' }, 'SEARCH instances USING INDEX instances_live_by_machine (machine_id=?)'],
  ] as const)('with %j are read from an index, in their order', (filter, index) => {
    const { rows, order } = operatedInstances(filter);
    const { sql, parameters } = restOf(rows, {}, order.by).limit(1).compile();
    const database = new BetterSqlite3(world.test.databaseFile, { readonly: true });
    const plan = database.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters);
    database.close();
    const steps = plan.map(({ detail }) => detail);
    expect(steps).toContain(index);
    expect(steps.filter((step) => step.startsWith('USE TEMP B-TREE'))).toEqual([]);
  });
});

describe('the offers of everybody', () => {
  it.each([
    [{}, 'SCAN offers USING INDEX offers_by_age'],
    [{ withdrawn: true }, 'SCAN offers USING INDEX offers_withdrawn'],
    [{ withdrawn: false }, 'SCAN offers USING INDEX offers_open_by_age'],
    [{ gpu_model: 'H100' }, 'SEARCH offers USING INDEX offers_of_model (gpu_model=?)'],
    [{ gpu_model: 'H100', withdrawn: false }, 'SEARCH offers USING INDEX offers_open_of_model (gpu_model=?)'],
    [{ machine_id: 'm' }, 'SEARCH offers USING INDEX offers_of_machine (machine_id=?)'],
  ] as const)('with %j are read from an index, in their order', (filter, index) => {
    const { sql, parameters } = restOf(operatedOffers(filter), {}, newestFirst().by).limit(1).compile();
    const database = new BetterSqlite3(world.test.databaseFile, { readonly: true });
    const plan = database.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters);
    database.close();
    const steps = plan.map(({ detail }) => detail);
    expect(steps).toContain(index);
    expect(steps.filter((step) => step.startsWith('USE TEMP B-TREE'))).toEqual([]);
  });
});

describe('an offer', () => {
  const offer = async (id: string) => {
    const { items } = await world.test.operator.get<{ items: { id: string; unavailable_reason: string | null }[] }>(
      '/v1/operator/offers',
    );
    return items.find((item) => item.id === id);
  };
  const isFree = (id: string) =>
    eventually('it to be free', async () => (await offer(id))?.unavailable_reason === null);
  const reasonIs = (id: string, reason: RegExp) =>
    eventually(`the reason to be ${reason}`, async () => reason.test((await offer(id))?.unavailable_reason ?? ''));

  it('says to operators why it cannot be rented, and to renters only that it cannot', async () => {
    const { agent, body } = await world.host({ gpus: 2 });
    const { offer_id: id } = body;
    const of = (path: string) => `/v1/operator/machines/${agent.hostId}/${path}`;
    expect(await offer(id)).toMatchObject({ state: 'available', unavailable_reason: null });
    agent.beat({ obstacle: 'its canary is silent' });
    await reasonIs(id, /takes nothing new: its canary is silent/);
    agent.beat({ dockerAvailable: false });
    await reasonIs(id, /Docker/);
    agent.beat();
    await isFree(id);
    const rented = [await world.running(body), await world.running(body)];
    await reasonIs(id, /needs 1 GPU.*machine's 2.*2 are rented.*0 free/);
    await world.test.operator.post(of('cordon'));
    await reasonIs(id, /cordoned/);
    const seen = await world.admin.api.get(`/v1/offers/${id}`);
    expect(seen).toMatchObject({ state: 'unavailable' });
    expect(seen).not.toHaveProperty('unavailable_reason');
    for (const instance of rented) await destroy(instance.id, { reason: REASON });
    await world.test.operator.post(of('uncordon'));
    await isFree(id);
    agent.disconnect();
    await reasonIs(id, /not connected/);
    await world.test.operator.post(of('lost'));
    await reasonIs(id, /lost/);
    await world.test.operator.request('DELETE', `/v1/operator/machines/${agent.hostId}`);
    await reasonIs(id, /removed/);
    await world.test.operator.request('DELETE', `/v1/operator/offers/${id}`);
    expect(await offer(id)).toMatchObject({ state: 'withdrawn', unavailable_reason: null });
  });

  it('is not made for more GPUs than the machine shows', async () => {
    const { agent } = await world.host({ gpus: 2 });
    const prices = { price_per_hour_micro: 1, storage_price_per_gb_hour_micro: 1 };
    const make = (num_gpus: number) =>
      world.test.operator.request('POST', '/v1/operator/offers', { machine_id: agent.hostId, num_gpus, ...prices });
    const before = world.test.dump();
    expect(await make(3)).toMatchObject({ status: 422, body: { details: [{ path: 'num_gpus' }] } });
    expect(world.test.dump()).toEqual(before);
    expect((await make(2)).status).toBe(201);
  });
});
