import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import { eventually } from '../../scripts/eventually.js';
import { World } from '../contract/world.js';
import { statusIs } from '../harness/control-plane.js';
import { DAY_MS, DISK_MICRO, GPU_MICRO, HOUR_MS, makePoor } from '../harness/poor.js';
import { listening } from '../harness/told.js';

let world: World;
beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.stop());

const typesOf = (events: readonly { type: string }[]) => events.map(({ type }) => type);

describe('an organization is told', () => {
  it('each change of a status with its reason, the step before it, and nothing of what was refused', async () => {
    const { test, admin } = world;
    const told = listening(test, admin.organizationId);
    const { agent, body } = await world.host();
    const { id } = await world.running(body);
    expect((await admin.api.request('POST', `/v1/instances/${id}/start`)).status).toBe(409);
    await admin.api.post(`/v1/instances/${id}/stop`);
    await statusIs(admin.api, id, 'stopped');
    await admin.api.request('DELETE', `/v1/instances/${id}`);
    await statusIs(admin.api, id, 'destroyed');
    const events = told();
    const changes = events.filter(({ type }) => type === 'instance.status_changed');
    expect(changes.map(({ data }) => [data['previous_status'], data['status'], data['kind']])).toEqual([
      [null, 'creating', 'created'],
      ['creating', 'running', 'running'],
      ['running', 'stopping', 'stop_requested'],
      ['stopping', 'stopped', 'stopped'],
      ['stopped', 'destroying', 'destroy_requested'],
      ['destroying', 'destroyed', 'destroyed'],
    ]);
    expect(new Set(events.map(({ subject }) => subject))).toEqual(new Set([`instances/${id}`]));
    agent.close();
  });

  it('a row for each tenth of an image, and of an attempt that goes on one each five minutes', async () => {
    const { test, admin } = world;
    const { agent, body } = await world.host();
    const { id } = await world.running(body);
    const told = listening(test, admin.organizationId);
    const say = (kind: string, message: string) => agent.say({ progress: { instanceId: id, kind, message } });
    for (const percent of [10, 14, 19, 20, 20, 95]) say('pulling', `${percent} % of the image pulled`);
    for (let minute = 1; minute <= 7; minute++) {
      say('stop_attempt', `the host has tried to stop the workload for ${minute} minutes`);
      await agent.speak(id);
      test.clock.advance(MINUTE_MS);
    }
    const progress = told('instance.progress').map(({ data }) => [data['kind'], data['percent']]);
    expect(progress).toEqual([
      ['pulling', 10],
      ['pulling', 20],
      ['pulling', 95],
      ['stop_attempt', null],
      ['stop_attempt', null],
    ]);
    agent.close();
  });

  it('who may use it: keys, members and invitations, without a secret', async () => {
    const { test, admin } = world;
    const told = listening(test, admin.organizationId);
    const { key, secret } = await world.key();
    await admin.api.request('DELETE', `/v1/api-keys/${key.id}`);
    const member = await world.join();
    await world.key('personal', member);
    const members = '/v1/orgs/current/members';
    await admin.api.request('PATCH', `${members}/${member.userId}`, { role: 'admin' });
    await admin.api.request('PATCH', `${members}/${member.userId}`, { role: 'admin' });
    await admin.api.request('DELETE', `${members}/${member.userId}`);
    const invites = '/v1/orgs/current/invites';
    const { invite } = await admin.api.post<{ invite: { id: string } }>(invites, { email: 'x@example.com' });
    await admin.api.request('DELETE', `${invites}/${invite.id}`);
    const events = told().filter(({ type }) => type !== 'instance.noted');
    expect(typesOf(events)).toEqual([
      'api_key.created',
      'api_key.revoked',
      'invite.created',
      'member.joined',
      'api_key.created',
      'member.role_changed',
      'member.left',
      'api_key.revoked',
      'invite.created',
      'invite.revoked',
    ]);
    expect(JSON.stringify(events)).not.toContain(secret);
    expect(events[3]?.data).toEqual({ user_id: member.userId, role: 'member' });
    expect(JSON.stringify(events)).not.toContain('@');
  });

  it('that its payments are frozen, and are not any more', async () => {
    const { test, stranger } = world;
    const told = listening(test, stranger.organizationId);
    const path = `/v1/operator/organizations/${stranger.organizationId}`;
    for (const method of ['POST', 'POST', 'DELETE', 'DELETE']) await test.operator.request(method, `${path}/dispute`);
    expect(typesOf(told())).toEqual(['billing.payments_frozen', 'billing.payments_unfrozen']);
  });

  it('of maintenance of a machine on which it rents, and only then', async () => {
    const { test, admin, stranger } = world;
    const { agent, body } = await world.host();
    const { id } = await world.running(body);
    const [told, other] = [listening(test, admin.organizationId), listening(test, stranger.organizationId)];
    const path = `/v1/operator/machines/${agent.hostId}/maintenance`;
    const window = { starts_at: '2040-01-01T00:00:00.000Z', ends_at: '2040-01-02T00:00:00.000Z' };
    for (let time = 0; time < 2; time++) await test.operator.request('PUT', path, window);
    for (let time = 0; time < 2; time++) await test.operator.request('DELETE', path);
    const events = told();
    expect(typesOf(events)).toEqual(['machine.maintenance_planned', 'machine.maintenance_cancelled']);
    expect(events[0]?.data).toMatchObject({ ...window, machine_id: agent.hostId, instance_ids: [id] });
    expect(other()).toEqual([]);
    agent.close();
  });
});

describe('before money runs out', () => {
  it('it is warned 24, 4 and 1 hour before, once each, and again once it was lifted', async () => {
    const { test } = world;
    const poor = await makePoor(test, world.templateId);
    await poor.credit(28 * GPU_MICRO);
    const told = listening(test, poor.renter.organizationId);
    const warned = () => told('billing.balance_low').map(({ data }) => data['hours']);
    await poor.pass(5 * HOUR_MS);
    expect(warned()).toEqual([]);
    await poor.pass(2 * HOUR_MS);
    await poor.pass(HOUR_MS);
    expect(warned()).toEqual([24]);
    await poor.pass(18 * HOUR_MS + 1);
    expect(warned()).toEqual([4]);
    await poor.credit(6 * GPU_MICRO);
    await poor.pass(HOUR_MS);
    expect(warned()).toEqual([]);
    await poor.pass(6 * HOUR_MS);
    expect(warned()).toEqual([4]);
    await poor.pass(2 * HOUR_MS + MINUTE_MS);
    expect(warned()).toEqual([1]);
    const [exhausted] = (await poor.pass(HOUR_MS), told('billing.balance_exhausted'));
    expect(exhausted?.data).toEqual({ balance_micro: 0 });
    await poor.credit(100 * GPU_MICRO);
    expect(typesOf(told())).toContain('billing.credited');
    poor.agent.close();
  });

  it('it is not warned again by each job, nor by a host that comes and goes', async () => {
    const { test } = world;
    const poor = await makePoor(test, world.templateId, 2);
    await poor.credit(-2.5 * GPU_MICRO);
    const told = listening(test, poor.renter.organizationId);
    const warned = () => told('billing.balance_low').map(({ data }) => data['hours']);
    const [first = '', second = ''] = poor.ids;
    await poor.pass(1_000);
    expect(warned()).toEqual([]);
    for (const _ of [1, 2]) {
      for (let minute = 0; minute < 3; minute++) {
        test.advance(MINUTE_MS);
        await poor.agent.speak(first);
      }
      await poor.pass(1_000);
    }
    expect(warned()).toEqual([]);
    for (const id of [first, second]) {
      await poor.renter.api.delete(`/v1/instances/${id}`);
      await statusIs(poor.renter.api, id, 'destroyed');
    }
    const job = { offer_id: poor.offerId, template_id: world.templateId, disk_gb: 10 };
    const { id } = await poor.renter.api.post<{ id: string }>('/v1/instances', job);
    await statusIs(poor.renter.api, id, 'running');
    test.advance(1_000);
    expect(warned()).toEqual([]);
    poor.agent.close();
  });

  it('what is really charged counts: nothing is said of a host that is silent', async () => {
    const { test } = world;
    const poor = await makePoor(test, world.templateId);
    await poor.credit(23 * GPU_MICRO);
    const told = listening(test, poor.renter.organizationId);
    poor.agent.disconnect();
    await poor.pass(10 * MINUTE_MS);
    expect(told('billing.balance_low')).toEqual([]);
    poor.agent.close();
  });

  it('of its disks it is warned 24, 6 and 1 hour before they are destroyed', async () => {
    const { test } = world;
    const poor = await makePoor(test, world.templateId);
    const told = listening(test, poor.renter.organizationId);
    await poor.pass(2 * HOUR_MS);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    const risks = () => told('billing.disks_at_risk').map(({ data }) => data['hours']);
    await poor.pass(MINUTE_MS);
    expect(risks()).toEqual([24]);
    for (let hour = 1; hour < 24; hour++) await poor.pass(HOUR_MS);
    expect(risks()).toEqual([6, 1]);
    await poor.credit(100 * DISK_MICRO);
    await poor.pass(DAY_MS);
    expect(risks()).toEqual([]);
    expect((await poor.read()).status).toBe('stopped');
    poor.agent.close();
  });
});

describe('without a meter', () => {
  it('the disk of an instance in error is told of at each step', async () => {
    const { test } = world;
    const poor = await makePoor(test, world.templateId);
    const told = listening(test, poor.renter.organizationId);
    const risks = () => told('billing.disks_at_risk').map(({ data }) => data['hours']);
    poor.agent.exit(poor.id, { code: 1 });
    await statusIs(poor.renter.api, poor.id, 'error');
    await poor.credit(-20 * GPU_MICRO);
    expect(risks()).toEqual([24]);
    for (let hour = 1; hour < 24; hour++) test.advance(HOUR_MS);
    expect(risks()).toEqual([6, 1]);
    poor.agent.close();
  });
});

describe('operators are told', () => {
  it('of a machine that is away for two minutes, and of its return, but of no short break', async () => {
    const { test } = world;
    test.advance(5 * MINUTE_MS);
    const { agent } = await world.host();
    const told = listening(test);
    const ofThis = () => typesOf(told().filter(({ subject }) => subject === `machines/${agent.hostId}`));
    const awayFor = async (...times: number[]) => {
      agent.disconnect();
      for (const ms of times) test.advance(ms);
      await agent.connect();
      test.advance(20_000);
    };
    await awayFor(20_000, 100_000);
    expect(ofThis()).toEqual([]);
    await awayFor(20_000, 2 * MINUTE_MS, MINUTE_MS);
    expect(ofThis()).toEqual(['machine.away', 'machine.back']);
    agent.close();
  });

  it('of a host that takes nothing new for a minute, with its reason, and that does again', async () => {
    const { test } = world;
    const agent = await test.host();
    const told = listening(test);
    const ofThis = () => told().filter(({ subject }) => subject === `machines/${agent.hostId}`);
    const { connections, clock } = test.core.platform;
    const says = async (obstacle: string, ...times: number[]) => {
      for (const ms of [1, ...times]) {
        test.advance(ms);
        agent.beat({ obstacle });
        await eventually('the heartbeat', () => connections.heardAt(agent.hostId) === clock.monotonic());
      }
    };
    await says('no container with a GPU starts on this host: refused', 20_000, 20_000);
    await says('', 20_000, 20_000, 20_000, 20_000, 20_000);
    expect(ofThis()).toEqual([]);
    const minutes = Array.from({ length: 9 }, () => 20_000);
    await says('no container with a GPU starts on this host: refused', ...minutes);
    const [first, ...others] = ofThis();
    expect([first?.type, others]).toEqual(['machine.refusing', []]);
    expect(first?.data).toMatchObject({ reason: 'no container with a GPU starts on this host: refused' });
    await says('', ...minutes);
    expect(typesOf(ofThis())).toEqual(['machine.accepting']);
    agent.close();
  });

  it('of a GPU that is unhealthy, and healthy again', async () => {
    const { test } = world;
    const agent = await test.host({ gpus: 2 });
    const { gpus, ...inventory } = agent.inventory as { gpus: Record<string, unknown>[] };
    const [first, second] = gpus;
    const told = listening(test);
    await agent.claim({ inventory: { ...inventory, gpus: [first, { ...second, healthy: false, reason: 'hot' }] } });
    test.advance(20_000);
    await agent.claim({ inventory: { ...inventory, gpus } });
    test.advance(10 * MINUTE_MS);
    const events = told().filter(({ subject }) => subject === `machines/${agent.hostId}`);
    expect(typesOf(events)).toEqual(['gpu.unhealthy', 'gpu.healthy']);
    expect(events[0]?.data).toMatchObject({ gpu_uuid: second?.['uuid'], reason: 'hot' });
    agent.close();
  });

  it('of a rented GPU that is missing, as is its renter', async () => {
    const { test, admin } = world;
    const { agent, body } = await world.host();
    const { id } = await world.running(body);
    const { gpus: all, ...inventory } = agent.inventory as { gpus: Record<string, unknown>[] };
    const gone = { healthy: false, missing: true, reason: 'its driver no longer lists it' };
    const told = [listening(test), listening(test, admin.organizationId)];
    await agent.claim({ inventory: { ...inventory, gpus: all.map((gpu) => ({ ...gpu, ...gone })) } });
    test.advance(20_000);
    const [forOperators = [], forRenter = []] = told.map((each) =>
      each().filter(({ type }) => type === 'gpu.unhealthy' || type === 'instance.gpu_unhealthy'),
    );
    expect(typesOf(forOperators.filter(({ subject }) => subject === `machines/${agent.hostId}`))).toContain(
      'gpu.unhealthy',
    );
    expect(forRenter).toMatchObject([
      {
        type: 'instance.gpu_unhealthy',
        subject: `instances/${id}`,
        data: { kind: 'gpu_unhealthy', reason: 'its driver no longer lists it' },
      },
    ]);
    const toldLater = listening(test, admin.organizationId);
    await agent.claim({ inventory: { ...inventory, gpus: all } });
    test.advance(10 * MINUTE_MS);
    expect(toldLater('instance.gpu_healthy')).toMatchObject([
      { subject: `instances/${id}`, data: { kind: 'gpu_healthy', gpu_uuid: all[0]?.['uuid'] } },
    ]);
    await agent.connect();
    await admin.api.request('DELETE', `/v1/instances/${id}`);
    await statusIs(admin.api, id, 'destroyed');
    agent.close();
  });

  it('of a GPU that is healthy again, but not whoever rented it only then', async () => {
    const { test, admin } = world;
    const { agent, body } = await world.host({ gpus: 1 });
    const { id } = await world.running(body);
    const { gpus: all, ...inventory } = agent.inventory as { gpus: Record<string, unknown>[] };
    const told = [listening(test), listening(test, admin.organizationId)];
    await agent.claim({ inventory: { ...inventory, gpus: all.map((gpu) => ({ ...gpu, healthy: false })) } });
    test.advance(20_000);
    await admin.api.request('DELETE', `/v1/instances/${id}`);
    await statusIs(admin.api, id, 'destroyed');
    test.advance(1);
    await agent.claim({ inventory: { ...inventory, gpus: all } });
    const later = await world.running(body);
    test.advance(10 * MINUTE_MS);
    const [forOperators = [], forRenter = []] = told.map((each) => each());
    expect(typesOf(forOperators.filter(({ subject }) => subject === `machines/${agent.hostId}`))).toEqual([
      'gpu.unhealthy',
      'gpu.healthy',
    ]);
    expect(typesOf(forRenter).filter((type) => type.startsWith('instance.gpu_'))).toEqual(['instance.gpu_unhealthy']);
    await agent.connect();
    await admin.api.request('DELETE', `/v1/instances/${later.id}`);
    await statusIs(admin.api, later.id, 'destroyed');
    agent.close();
  });

  it('of a command that is stuck, once', async () => {
    const { test, admin } = world;
    const { agent, body } = await world.host();
    const { id } = await world.running(body);
    agent.automatic = false;
    const told = listening(test);
    await admin.api.post(`/v1/instances/${id}/stop`);
    test.advance(14 * MINUTE_MS);
    expect(told('command.stuck')).toEqual([]);
    test.advance(MINUTE_MS);
    test.advance(MINUTE_MS);
    const events = told('command.stuck');
    expect(events.map(({ data }) => [data['instance_id'], data['command']])).toEqual([[id, 'stop']]);
    agent.close();
  });

  it('of a deploy that is stuck, once', async () => {
    const { test, admin } = world;
    const { agent, body } = await world.host({ automatic: false });
    const told = listening(test);
    const { id } = await admin.api.post<{ id: string }>('/v1/instances', body);
    await eventually('the command', () => agent.held.length > 0);
    test.advance(14 * MINUTE_MS);
    const ofThis = () => told('command.stuck').filter(({ subject }) => subject === `instances/${id}`);
    expect(ofThis()).toEqual([]);
    test.advance(MINUTE_MS);
    test.advance(MINUTE_MS);
    test.advance(MINUTE_MS);
    const events = ofThis();
    expect(events.map(({ data }) => [data['instance_id'], data['command']])).toEqual([[id, 'provision']]);
    agent.close();
  });
});
