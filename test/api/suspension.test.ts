import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../shared/time.js';
import type { InstanceBody } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { World, type DeployBody, type Refused } from '../contract/world.js';
import { statusIs, type Renter } from '../harness/control-plane.js';
import type { FakeAgent } from '../harness/fake-agent.js';
import { listening } from '../harness/told.js';

const REASON = 'it attacks other networks';
const ENOUGH_MICRO = 100_000_000_000;

let world: World;
beforeAll(async () => {
  world = await World.make();
  // The first two minutes, in which nothing is destroyed, are over.
  world.test.advance(5 * MINUTE_MS);
});
afterAll(() => world.stop());

interface Suspended {
  suspension: { since: string; reason: string; disks_kept_until: string } | null;
  balance_micro: number;
}

interface Customer {
  renter: Renter;
  agent: FakeAgent;
  body: DeployBody;
  /** What it has been told since it was last asked. */
  told: ReturnType<typeof listening>;
}

async function customer(options = {}): Promise<Customer> {
  const renter = await world.test.renter(ENOUGH_MICRO);
  const host = await world.host({ gpus: 4, ...options });
  return { renter, ...host, told: listening(world.test, renter.organizationId) };
}

const act = (path: string, { organizationId }: Renter, body: object) =>
  world.test.operator.request<Suspended>('POST', `/v1/operator/organizations/${organizationId}/${path}`, body);
const suspend = (renter: Renter, body: object = {}) => act('suspend', renter, { reason: REASON, ...body });
const restore = (renter: Renter) => act('restore', renter, { reason: 'it was a mistake' });
const read = ({ api }: Renter, id: string) => api.get<InstanceBody>(`/v1/instances/${id}`);
const refused = ({ api }: Renter, method: string, path: string, body?: object) =>
  world.refused(api, method, path, body);

describe('a suspended organization', () => {
  it('has nothing running any more, and can read, pay and destroy, but not deploy, start or invite', async () => {
    const { renter, body, told } = await customer();
    const [one, two] = [await world.running(body, renter.api), await world.running(body, renter.api)];
    const key = await renter.api.post<{ secret: string }>('/v1/api-keys', { name: 'k', kind: 'team' });
    expect(await suspend(renter)).toMatchObject({ status: 200, body: { suspension: { reason: REASON } } });
    expect((await read(renter, one.id)).status).toBe('stopping');
    for (const { id } of [one, two]) await statusIs(renter.api, id, 'stopped');
    expect(told('organization.suspended')).toMatchObject([
      { subject: `orgs/${renter.organizationId}`, data: { reason: REASON } },
    ]);

    const suspended = { status: 403, code: 'ORGANIZATION_SUSPENDED', reason: REASON };
    const keyed = world.test.api.as(key.secret);
    for (const api of [renter.api, keyed]) {
      expect(await world.refused(api, 'POST', '/v1/instances', { ...body, offer_id: one.id })).toMatchObject(suspended);
      expect(await world.refused(api, 'POST', `/v1/instances/${one.id}/start`)).toMatchObject(suspended);
      const { refusals } = await api.post<{ refusals: Refused[] }>('/v1/instances/estimate', body);
      expect(refusals.map(({ code }) => code)).toEqual(['ORGANIZATION_SUSPENDED']);
      expect((await api.get<{ items: object[] }>('/v1/instances')).items).toHaveLength(2);
      expect((await api.request('GET', '/v1/billing/transactions.csv')).status).toBe(200);
    }
    expect(await refused(renter, 'POST', '/v1/orgs/current/invites', { email: 'a@example.com' })).toMatchObject(
      suspended,
    );
    expect(await renter.api.get<Suspended>('/v1/orgs/current')).toMatchObject({ suspension: { reason: REASON } });
    const credit = { amount_micro: 5, reason: 'paid by bank' };
    await world.test.operator.post(`/v1/operator/organizations/${renter.organizationId}/credits`, credit);
    await renter.api.delete(`/v1/instances/${one.id}`);
    await statusIs(renter.api, one.id, 'destroyed');
  });

  it('is restored: everything can be started again, and nothing starts by itself', async () => {
    const { renter, body, told } = await customer();
    const { id } = await world.running(body, renter.api);
    await suspend(renter);
    await statusIs(renter.api, id, 'stopped');
    told();
    expect(await restore(renter)).toMatchObject({ status: 200, body: { suspension: null } });
    expect(told()).toMatchObject([{ type: 'organization.restored', data: { reason: 'it was a mistake' } }]);
    world.test.advance(5_000);
    expect((await read(renter, id)).status).toBe('stopped');
    await renter.api.post(`/v1/instances/${id}/start`);
    await statusIs(renter.api, id, 'running');
    expect(await world.deploys(body, renter.api)).toBe(201);
  });

  it('is so once: a repetition changes nothing, and neither does restoring what is not suspended', async () => {
    const { renter } = await customer();
    const before = world.test.dump();
    expect((await restore(renter)).status).toBe(200);
    expect(world.test.dump()).toEqual(before);
    await suspend(renter, { keep_disks_days: 3 });
    world.test.advance(HOUR_MS);
    const once = world.test.dump();
    expect((await suspend(renter, { keep_disks_days: 3 })).status).toBe(200);
    expect(world.test.dump()).toEqual(once);
  });

  it('with another reason or time has that from then on, and at least another day', async () => {
    const { renter, told } = await customer();
    const first = (await suspend(renter, { keep_disks_days: 3 })).body.suspension;
    expect(Date.parse(first?.disks_kept_until ?? '')).toBe(world.test.clock.now() + 3 * DAY_MS);
    world.test.advance(2 * DAY_MS);
    await world.test.signInOperator();
    told();
    const second = (await suspend(renter, { reason: 'worse', keep_disks_days: 1 })).body.suspension;
    expect(second).toMatchObject({ since: first?.since, reason: 'worse' });
    expect(Date.parse(second?.disks_kept_until ?? '')).toBe(world.test.clock.now() + DAY_MS);
    expect(told('organization.suspended')).toHaveLength(1);
  });

  it('gives a reason, on one line and not too long, and sensible days', async () => {
    const { renter } = await customer();
    const before = world.test.dump();
    for (const body of [{ reason: '' }, { reason: 'a\nb' }, { reason: 'x'.repeat(257) }, { keep_disks_days: 0 }])
      expect(await suspend(renter, body)).toMatchObject({ status: 422 });
    expect(await act('suspend', renter, {})).toMatchObject({ status: 422 });
    expect(await act('restore', renter, {})).toMatchObject({ status: 422 });
    expect(world.test.dump()).toEqual(before);
  });
});

describe('what is in flight when an organization is suspended', () => {
  it('a deploy and a start are stopped once they run, and an accepted deploy is still answered', async () => {
    const { renter, agent, body } = await customer();
    const stopped = await world.stopped(body, renter.api);
    agent.automatic = false;
    const key = { 'Idempotency-Key': 'one' };
    const deployed = (await renter.api.request<InstanceBody>('POST', '/v1/instances', body, key)).body;
    const commandOf = (id: string) => eventually('a command', () => agent.held.find((one) => one.instanceId === id));
    const provision = await commandOf(deployed.id);
    const started = renter.api.post(`/v1/instances/${stopped.id}/start`);
    const start = await commandOf(stopped.id);
    agent.accept(start);
    await started;
    await suspend(renter);
    expect([(await read(renter, deployed.id)).status, (await read(renter, stopped.id)).status]).toEqual([
      'creating',
      'starting',
    ]);
    expect(await renter.api.request('POST', '/v1/instances', body, key)).toMatchObject({
      status: 201,
      body: { id: deployed.id },
    });
    agent.automatic = true;
    for (const command of [provision, start]) agent.done(command);
    for (const id of [deployed.id, stopped.id]) await statusIs(renter.api, id, 'running');
    world.test.advance(2_000);
    for (const id of [deployed.id, stopped.id]) await statusIs(renter.api, id, 'stopped');
    const { items } = await renter.api.get<{ items: { kind: string }[] }>(`/v1/instances/${deployed.id}/events`);
    expect(items.map(({ kind }) => kind)).toContain('suspended');
  });

  it('a stop that its host has not confirmed in time is ordered again', async () => {
    const { renter, agent, body } = await customer();
    const { id } = await world.running(body, renter.api);
    agent.automatic = false;
    await suspend(renter);
    const statuses = new Set<string>();
    for (let minute = 0; minute < 62; minute++) {
      world.test.advance(MINUTE_MS);
      agent.beat();
      statuses.add((await read(renter, id)).status);
    }
    expect((await read(renter, id)).status).toBe('stopping');
    const kinds = (await renter.api.get<{ items: { kind: string }[] }>(`/v1/instances/${id}/events`)).items;
    expect(kinds.filter(({ kind }) => kind === 'suspended').length).toBeGreaterThan(1);
  });

  it('a schedule starts nothing, and says why', async () => {
    const { renter, body, told } = await customer();
    const { id } = await world.stopped(body, renter.api);
    const days = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'];
    const entries = [{ action: 'start', days, at: '12:00' }];
    await renter.api.request('PUT', `/v1/instances/${id}/schedule`, { time_zone: 'UTC', entries });
    await suspend(renter);
    for (let hour = 0; hour < 25; hour++) world.test.advance(HOUR_MS);
    expect(told('instance.schedule_refused')).toMatchObject([{ data: { code: 'ORGANIZATION_SUSPENDED' } }]);
    expect((await read(renter, id)).status).toBe('stopped');
    await world.test.signInOperator();
  });

  it('what an operator adopts for it is stopped', async () => {
    const { renter, agent, body } = await customer();
    await suspend(renter);
    const other = await world.host({ gpus: 1 });
    const machine = await world.test.operator.get<{ gpus: { uuid: string }[] }>(
      `/v1/operator/machines/${other.agent.hostId}`,
    );
    const instanceId = crypto.randomUUID();
    const observation = { state: 'WORKLOAD_STATE_RUNNING' };
    const gpuUuids = machine.gpus.map(({ uuid }) => uuid);
    await other.agent.claim({ instances: [{ instanceId, sequence: 1, gpuUuids, observation }] });
    const { items } = await world.test.operator.get<{ items: { id: string; instance_id: string }[] }>(
      '/v1/operator/quarantine',
    );
    const { id } = items.find((one) => one.instance_id === instanceId) ?? { id: '' };
    const adoption = {
      organization_id: renter.organizationId,
      template_id: body.template_id,
      offer_id: other.body.offer_id,
      disk_gb: 10,
    };
    await world.test.operator.post(`/v1/operator/quarantine/${id}/adopt`, adoption);
    world.test.advance(1_000);
    expect(['stopping', 'stopped']).toContain((await read(renter, instanceId)).status);
    agent.close();
  });
});

describe('the disks of a suspended organization', () => {
  const pass = (ms: number) => {
    world.test.advance(ms);
    world.test.advance(1_000);
  };

  it('are charged and kept with their GPUs for the days that the operator has set, and then destroyed', async () => {
    const { renter, body, told } = await customer();
    const { id } = await world.running(body, renter.api);
    const failed = await world.running(body, renter.api);
    await suspend(renter, { keep_disks_days: 2 });
    for (const one of [id, failed.id]) await statusIs(renter.api, one, 'stopped');
    expect(await read(renter, id)).toMatchObject({ gpus_released: false, gpu_release: null });
    const before = (await read(renter, id)).spend_micro;
    told();
    const hoursTold: unknown[] = [];
    for (let hour = 0; hour < 46; hour++) {
      pass(HOUR_MS);
      hoursTold.push(...told('organization.disks_at_risk').map(({ data }) => data['hours']));
    }
    expect(hoursTold).toEqual([24, 6]);
    // The control plane has looked once an hour only: it charges disks once their host is heard.
    const { core, lastAgent } = world.test;
    lastAgent.beat();
    await eventually('the host to be heard', () => core.platform.connections.isConnected(lastAgent.hostId));
    pass(0);
    expect((await read(renter, id)).spend_micro).toBeGreaterThan(before);
    expect((await read(renter, id)).status).toBe('stopped');
    pass(HOUR_MS);
    expect(told('organization.disks_at_risk')).toMatchObject([{ data: { hours: 1, instances: 2, reason: REASON } }]);
    pass(HOUR_MS);
    pass(MINUTE_MS);
    for (const one of [id, failed.id]) expect((await read(renter, one)).status).toBe('destroying');
    const { items } = await renter.api.get<{ items: { kind: string }[] }>(`/v1/instances/${id}/events`);
    expect(items.map(({ kind }) => kind)).toContain('suspension_expired');
    await world.test.signInOperator();
  });

  it('are released as after any stop where payments are frozen as well', async () => {
    const { renter, body } = await customer();
    const { id } = await world.running(body, renter.api);
    await suspend(renter);
    await statusIs(renter.api, id, 'stopped');
    await world.test.operator.post(`/v1/operator/organizations/${renter.organizationId}/dispute`);
    await eventually('the release', async () => (await read(renter, id))['gpus_released'] === true);
  });

  it('stay if the organization is restored in time', async () => {
    const { renter, body } = await customer();
    const { id } = await world.stopped(body, renter.api);
    await suspend(renter, { keep_disks_days: 1 });
    for (let hour = 0; hour < 23; hour++) pass(HOUR_MS);
    await world.test.signInOperator();
    await restore(renter);
    for (let hour = 0; hour < 48; hour++) pass(HOUR_MS);
    expect((await read(renter, id)).status).toBe('stopped');
    await world.test.signInOperator();
  });

  it('are destroyed an hour after the first warning at the earliest, also if nobody could be warned in time', async () => {
    const { renter, body, told } = await customer();
    const { id } = await world.stopped(body, renter.api);
    await suspend(renter, { keep_disks_days: 2 });
    told();
    await world.test.core.stop();
    world.test.clock.advance(3 * DAY_MS);
    await world.test.boot();
    await world.test.signInOperator();
    pass(3 * MINUTE_MS);
    pass(3 * MINUTE_MS);
    expect(told('organization.disks_at_risk')).toMatchObject([{ data: { hours: 1 } }]);
    expect((await read(renter, id)).status).toBe('stopped');
    pass(50 * MINUTE_MS);
    expect((await read(renter, id)).status).toBe('stopped');
    pass(20 * MINUTE_MS);
    pass(MINUTE_MS);
    expect(['destroying', 'destroyed']).toContain((await read(renter, id)).status);
  });

  it('wait while an operator must confirm the clock, and have as much time left as before it was set', async () => {
    const { renter, body } = await customer();
    const { id } = await world.stopped(body, renter.api);
    await suspend(renter, { keep_disks_days: 1 });
    for (let hour = 0; hour < 20; hour++) pass(HOUR_MS);
    world.test.clock.step(3 * DAY_MS);
    pass(MINUTE_MS);
    await world.test.signInOperator();
    await world.test.operator.post('/v1/operator/clock/confirm');
    pass(3 * HOUR_MS);
    expect((await read(renter, id)).status).toBe('stopped');
    world.test.clock.step(-HOUR_MS);
    pass(2 * HOUR_MS);
    pass(2 * HOUR_MS);
    expect((await read(renter, id)).status).toBe('stopped');
    await world.test.signInOperator();
    await world.test.operator.post('/v1/operator/clock/confirm');
    pass(2 * MINUTE_MS);
    pass(2 * MINUTE_MS);
    expect(['destroying', 'destroyed']).toContain((await read(renter, id)).status);
  });
});
