import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import type { InstanceBody } from '../harness/api-client.js';
import { statusIs } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import type { FakeAgent } from '../harness/fake-agent.js';
import type { WireCommand } from '../harness/wire.js';
import { DAY_MS, HOUR_MS, makePoor } from '../harness/poor.js';
import { TIMESTAMP, World, type DeployBody } from './world.js';

let world: World;
beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.stop());

const read = (id: string) => world.admin.api.get<InstanceBody>(`/v1/instances/${id}`);
const ask = (method: string, path: string) => world.admin.api.request<InstanceBody>(method, `/v1/instances/${path}`);
const next = (agent: FakeAgent): Promise<WireCommand> => eventually('a command', () => agent.held[0]);

/** Time passes, and the host is heard all the while. */
async function later(agent: FakeAgent, ms: number): Promise<void> {
  world.test.advance(ms);
  agent.beat();
  await eventually('the host to be heard', async () => {
    const machine = await world.test.operator.get<{ connected: boolean }>(`/v1/operator/machines/${agent.hostId}`);
    return machine.connected;
  });
  world.test.advance(0);
}

const passing = (agent: FakeAgent) => ({
  clock: world.test,
  stepMs: 10_000,
  parties: [() => agent.roundTrip()],
});

/** A host that does nothing by itself, with an instance that runs. */
async function slow(): Promise<{ agent: FakeAgent; id: string; body: DeployBody }> {
  const { agent, body } = await world.host({ gpus: 2 });
  const { id } = await world.running(body);
  agent.automatic = false;
  return { agent, id, body };
}

describe('States and transitions', () => {
  it('(none), POST /v1/instances accepted: creating; 201, no address, only destroy, billing not started', async () => {
    const { agent, body } = await world.host();
    agent.automatic = false;
    const answer = await world.admin.api.request<InstanceBody>('POST', '/v1/instances', body);
    expect(answer).toMatchObject({
      status: 201,
      body: {
        status: 'creating',
        ssh_host: null,
        ssh_port: null,
        allowed_actions: ['destroy'],
        started_at: null,
        spend_micro: 0,
      },
    });
  });

  it('creating, workload comes up: running; started_at set on first run', async () => {
    const { agent, body } = await world.host();
    agent.automatic = false;
    const { id } = await world.admin.api.post<InstanceBody>('/v1/instances', body);
    agent.done(await next(agent));
    expect((await statusIs(world.admin.api, id, 'running'))['started_at']).toMatch(TIMESTAMP);
  });

  it('running, stop: stopping, then stopped; disk kept, GPU slot held', async () => {
    const { agent, id, body } = await slow();
    expect((await ask('POST', `${id}/stop`)).body.status).toBe('stopping');
    const command = await next(agent);
    expect(command).toMatchObject({ desired: 'stopped', stopped: { releaseGpus: false } });
    agent.done(command);
    await statusIs(world.admin.api, id, 'stopped');
    agent.automatic = true;
    expect(await world.deploys(body)).toBe(201);
    expect(await world.refused(world.admin.api, 'POST', '/v1/instances', body)).toMatchObject({
      code: 'OFFER_UNAVAILABLE',
    });
  });

  it('running, stop while payments are frozen by a dispute and the machine supports release: GPUs released', async () => {
    const { agent, id } = await slow();
    await world.test.operator.post(`/v1/operator/organizations/${world.admin.organizationId}/dispute`);
    expect((await ask('POST', `${id}/stop`)).body).toMatchObject({ gpu_release: 'pending', gpus_released: false });
    const command = await next(agent);
    expect(command).toMatchObject({ desired: 'stopped', stopped: { releaseGpus: true } });
    agent.done(command);
    expect(await statusIs(world.admin.api, id, 'stopped')).toMatchObject({
      gpu_release: 'released',
      gpus_released: true,
    });
    await world.test.operator.delete(`/v1/operator/organizations/${world.admin.organizationId}/dispute`);
  });

  it('stopping, host has not confirmed the stop after 30 minutes: running, stop_timed_out, stop kept being retried', async () => {
    const { agent, id } = await slow();
    await ask('POST', `${id}/stop`);
    const command = await next(agent);
    await later(agent, 30 * MINUTE_MS - 1);
    expect((await read(id)).status).toBe('stopping');
    agent.held.length = 0;
    await later(agent, 1);
    expect(await read(id)).toMatchObject({
      status: 'running',
      error_code: 'stop_timed_out',
      error_message: expect.any(String) as string,
      allowed_actions: ['stop', 'destroy'],
      ssh_host: '203.0.113.7',
    });
    const again = await advanceUntil('the stop again', passing(agent), () => agent.held[0]);
    expect(again).toMatchObject({ commandId: command.commandId, desired: 'stopped' });
    agent.done(again);
    expect(await statusIs(world.admin.api, id, 'stopped')).toMatchObject({ error_code: null, error_message: null });
  });

  it('stopped, start: starting, then running; same disk, same GPUs', async () => {
    const { agent, id } = await slow();
    const gpus = agent.workloads.get(id)?.gpuUuids;
    await ask('POST', `${id}/stop`);
    agent.done(await next(agent));
    await statusIs(world.admin.api, id, 'stopped');
    const answer = ask('POST', `${id}/start`);
    const command = await next(agent);
    expect(command.running).toMatchObject({ mayCreate: false, spec: { gpuUuids: gpus } });
    agent.accept(command);
    expect((await answer).body.status).toBe('starting');
    agent.done(command);
    await statusIs(world.admin.api, id, 'running');
  });

  it.each(['creating', 'starting', 'running', 'stopping', 'stopped', 'error', 'destroying'])(
    '%s, DELETE: destroying, then destroyed; slice released, access_token null',
    async (status) => {
      const ids = await world.inEveryStatus();
      const id = ids[status] ?? '';
      const agent = world.test.lastAgent;
      const earlier = [...agent.held];
      const answer = await ask('DELETE', id);
      expect(answer).toMatchObject({ status: status === 'destroying' ? 200 : 202, body: { status: 'destroying' } });
      const command = await eventually('the destroy', () =>
        agent.held.find((held) => held.instanceId === id && held.desired === 'absent' && !earlier.includes(held)),
      );
      agent.done(command);
      expect(await statusIs(world.admin.api, id, 'destroyed')).toMatchObject({
        access_token: null,
        allowed_actions: [],
      });
      const { gpus } = await world.test.operator.get<{ gpus: { instance_id: string | null }[] }>(
        `/v1/operator/machines/${agent.hostId}`,
      );
      expect(gpus.map(({ instance_id }) => instance_id)).not.toContain(id);
      for (const other of Object.values(ids)) await ask('DELETE', other);
      agent.automatic = true;
      for (const held of Array.from(agent.held)) agent.done(held);
      for (const other of Object.values(ids)) await statusIs(world.admin.api, other, 'destroyed');
    },
  );

  it('destroying, DELETE again: teardown re-sent, 200', async () => {
    const { agent, id } = await slow();
    await ask('DELETE', id);
    const first = await next(agent);
    expect(await ask('DELETE', id)).toMatchObject({ status: 200, body: { status: 'destroying' } });
    const second = await eventually('the teardown again', () =>
      agent.held.find((held) => held.commandId !== first.commandId),
    );
    expect(second.desired).toBe('absent');
  });

  it('running, balance reaches zero: stopped (via stopping)', async () => {
    const poor = await makePoor(world.test, world.templateId);
    poor.agent.automatic = false;
    await poor.pass(2 * HOUR_MS - 1);
    expect((await poor.read()).status).toBe('running');
    await poor.pass(1);
    expect((await poor.read()).status).toBe('stopping');
    const command = await next(poor.agent);
    expect(command.desired).toBe('stopped');
    poor.agent.done(command);
    await statusIs(poor.renter.api, poor.id, 'stopped');
  });
  it('stopped or error, balance at or below zero for 24 hours and at or below -$5: destroyed', async () => {
    const poor = await makePoor(world.test, world.templateId, 2);
    const [ended, stopped] = poor.ids;
    poor.agent.exit(poor.id, { code: 1 });
    await statusIs(poor.renter.api, poor.id, 'error');
    await poor.pass(4 * HOUR_MS);
    await statusIs(poor.renter.api, stopped ?? '', 'stopped');
    await poor.pass(DAY_MS - 1);
    expect(await poor.balance()).toBeLessThan(-5_000_000);
    for (const [id, status] of [
      [ended, 'error'],
      [stopped, 'stopped'],
    ])
      expect((await poor.read(id)).status).toBe(status);
    await poor.pass(1);
    for (const id of poor.ids) await statusIs(poor.renter.api, id, 'destroyed');
  });
  it('stopped, payment dispute freezes payments: gpus_released true', async () => {
    const { agent, body } = await world.host({ gpus: 1 });
    const { id } = await world.stopped(body, world.stranger.api);
    agent.automatic = false;
    const dispute = `/v1/operator/organizations/${world.stranger.organizationId}/dispute`;
    await world.test.operator.post(dispute);
    const mine = () => world.stranger.api.get<InstanceBody>(`/v1/instances/${id}`);
    expect(await mine()).toMatchObject({
      status: 'stopped',
      gpus_released: false,
      gpu_release: 'pending',
      gpu_release_requested_at: expect.stringMatching(TIMESTAMP) as string,
      stop_releases_gpus: true,
    });
    expect((await world.refused(world.admin.api, 'POST', '/v1/instances', body)).code).toBe('OFFER_UNAVAILABLE');
    const command = await next(agent);
    expect(command.stopped).toEqual({ releaseGpus: true });
    agent.done(command);
    await eventually('the release', async () => (await mine())['gpus_released']);
    expect(await mine()).toMatchObject({ status: 'stopped', gpu_release: 'released' });
    agent.automatic = true;
    const { id: other } = await world.running(body);
    await world.test.operator.delete(dispute);
    const start = await world.refused(world.stranger.api, 'POST', `/v1/instances/${id}/start`);
    expect(start.code).toBe('CAPACITY_UNAVAILABLE');
    await world.admin.api.delete(`/v1/instances/${other}`);
    await statusIs(world.admin.api, other, 'destroyed');
    await world.stranger.api.post(`/v1/instances/${id}/start`);
    expect(await statusIs(world.stranger.api, id, 'running')).toMatchObject({
      gpus_released: false,
      gpu_release: null,
      gpu_release_requested_at: null,
      stop_releases_gpus: false,
    });
  });
  it('stopped, balance reaches zero: gpus_released true', async () => {
    const poor = await makePoor(world.test, world.templateId);
    await poor.renter.api.post(`/v1/instances/${poor.id}/stop`);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    await poor.pass(7 * 60 * 60_000);
    expect(await poor.read()).toMatchObject({ status: 'stopped', gpus_released: false, gpu_release: null });
    await poor.pass(13 * 60_000);
    await eventually('the release', async () => (await poor.read())['gpus_released']);
    expect(await poor.read()).toMatchObject({ status: 'stopped', gpu_release: 'released' });
  });
});

describe('Rules', () => {
  it('1. stop only from running, start only from stopped, DELETE from all but destroyed; else INVALID_STATE names the status', async () => {
    const ids = await world.inEveryStatus();
    for (const [status, id] of Object.entries(ids)) {
      const { allowed_actions } = await read(id);
      for (const [action, method, path] of [
        ['stop', 'POST', `${id}/stop`],
        ['start', 'POST', `${id}/start`],
        ['destroy', 'DELETE', id],
      ] as const) {
        if (allowed_actions.includes(action)) continue;
        const refused = await world.refused(world.admin.api, method, `/v1/instances/${path}`);
        expect(refused).toMatchObject({ status: 409, code: 'INVALID_STATE' });
        expect(refused.message).toContain(status);
      }
    }
    const actions = Object.fromEntries(
      await Promise.all(Object.entries(ids).map(async ([status, id]) => [status, (await read(id)).allowed_actions])),
    ) as Record<string, string[]>;
    expect(actions).toEqual({
      creating: ['destroy'],
      starting: ['destroy'],
      running: ['stop', 'destroy'],
      stopping: ['destroy'],
      stopped: ['start', 'destroy'],
      error: ['destroy'],
      destroying: ['destroy'],
      destroyed: [],
    });
  });

  it('2. stop, start and DELETE return the full instance at its new status', async () => {
    const { agent, body } = await world.host();
    const { id } = await world.running(body);
    const fields = Object.keys(await read(id)).sort();
    const stop = await ask('POST', `${id}/stop`);
    expect([stop.body.status, Object.keys(stop.body).sort()]).toEqual(['stopping', fields]);
    await statusIs(world.admin.api, id, 'stopped');
    const start = await ask('POST', `${id}/start`);
    expect([start.body.status, Object.keys(start.body).sort()]).toEqual(['starting', fields]);
    await statusIs(world.admin.api, id, 'running');
    const destroy = await ask('DELETE', id);
    expect([destroy.body.status, Object.keys(destroy.body).sort()]).toEqual(['destroying', fields]);
    expect(agent.closed).toBe(false);
  });

  it.each([
    ['stop', 'POST', '/stop', 'stopped'],
    ['destroy', 'DELETE', '', 'destroyed'],
  ])(
    '3. %s is recorded first and sent afterwards, again and again until the host has done it',
    async (_, method, path, end) => {
      const { agent, id } = await slow();
      agent.disconnect();
      await eventually('the host to be away', async () => {
        const machine = await world.test.operator.get<{ connected: boolean }>(`/v1/operator/machines/${agent.hostId}`);
        return !machine.connected;
      });
      expect((await ask(method, id + path)).status).toBe(202);
      await world.test.restart();
      await agent.connect();
      const command = await next(agent);
      agent.held.length = 0;
      world.test.advance(60_000);
      const again = await advanceUntil('the command again', passing(agent), () => agent.held[0]);
      expect(again.commandId).toBe(command.commandId);
      agent.done(again);
      await statusIs(world.admin.api, id, end);
    },
  );

  it('4. a stop re-sent after the instance was started again does not stop it', async () => {
    const { agent, id } = await slow();
    await ask('POST', `${id}/stop`);
    const stop = await next(agent);
    agent.done(stop);
    await statusIs(world.admin.api, id, 'stopped');
    const answer = ask('POST', `${id}/start`);
    const start = await next(agent);
    agent.done(start);
    await answer;
    await statusIs(world.admin.api, id, 'running');
    agent.repeat(stop);
    world.test.advance(600_000);
    agent.beat();
    expect(agent.received.filter(({ commandId }) => commandId === stop.commandId)).toHaveLength(1);
    expect((await read(id)).status).toBe('running');
    expect(start.sequence).toBeGreaterThan(stop.sequence);
  });

  it('4. each new client request gets a new identity; a repeated DELETE counts as one', async () => {
    const { agent, id } = await slow();
    await ask('POST', `${id}/stop`);
    await ask('DELETE', id);
    await ask('DELETE', id);
    const commands = await eventually('three commands', () => agent.received.length >= 4 && agent.received.slice(1));
    expect(new Set(commands.map(({ commandId }) => commandId)).size).toBe(3);
    expect(commands.map(({ sequence }) => sequence)).toEqual([2, 3, 4]);
  });
});
