import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import type { InstanceBody } from '../harness/api-client.js';
import { World } from '../contract/world.js';
import { statusIs } from '../harness/control-plane.js';
import { makePoor, type Poor } from '../harness/poor.js';
import { listening } from '../harness/told.js';

let world: World;
/** A template that publishes a port. */
let servingId: string;
beforeAll(async () => {
  world = await World.make();
  servingId = await world.test.template({ ports: [{ port: 8080, protocol: 'http', label: 'web' }] });
});
afterAll(() => world.test.stop());

type Idle = InstanceBody & { idle_stop_minutes: number | null };

const NOTHING_USED = {
  endedMsAgo: 0,
  gpus: [{ useMaxPercent: 2 }],
  cpuMaxMillis: 20,
  cpuLimitMillis: 1e3,
  sshSessions: 0,
  portConnections: 0,
  connectionsOpened: 0,
};

const change = ({ renter, id }: Poor, body: object) =>
  renter.api.request<Idle & { code?: string; message?: string }>('PATCH', `/v1/instances/${id}`, body);
const read = (poor: Poor) => poor.read() as Promise<Idle>;

async function limited(minutes: number, templateId = servingId, more: object = {}): Promise<Poor> {
  const poor = await makePoor(world.test, templateId);
  expect((await change(poor, { idle_stop_minutes: minutes, ...more })).body).toMatchObject({
    idle_stop_minutes: minutes,
  });
  return poor;
}

/** Each minute that passes is measured. */
async function pass(poor: Poor, minutes: number, use: object = NOTHING_USED): Promise<void> {
  for (let minute = 0; minute < minutes; minute++) {
    world.test.advance(MINUTE_MS);
    if (poor.agent.workloads.has(poor.id)) await poor.agent.measure(poor.id, { ...NOTHING_USED, ...use });
  }
}

describe('an instance that is idle', () => {
  it('is told so ten minutes before, and is stopped; after a start it counts anew', async () => {
    const poor = await limited(30);
    const told = listening(world.test, poor.renter.organizationId);
    const idleOnes = () => told('instance.idle').map(({ data }) => data);
    const began = world.test.clock.now();
    await pass(poor, 19);
    expect(idleOnes()).toEqual([]);
    await pass(poor, 1);
    const stops_at = new Date(began + 30 * MINUTE_MS).toISOString();
    expect(idleOnes()).toMatchObject([{ idle_since: new Date(began).toISOString(), stops_at, kind: 'idle' }]);
    await pass(poor, 9);
    expect(await read(poor)).toMatchObject({ status: 'running' });
    await pass(poor, 1);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    expect(idleOnes()).toEqual([]);
    expect((await poor.eventKinds()).filter((kind) => kind.startsWith('idle'))).toEqual(['idle_stop', 'idle']);
    // The time until the stop is charged like that of any stop.
    expect((await read(poor)).spend_micro).toBeGreaterThan(0);

    await poor.credit(100_000_000);
    await poor.renter.api.post(`/v1/instances/${poor.id}/start`);
    await statusIs(poor.renter.api, poor.id, 'running');
    await pass(poor, 19);
    expect(idleOnes()).toEqual([]);
    await pass(poor, 10);
    expect(await read(poor)).toMatchObject({ status: 'running' });
    poor.agent.close();
  });

  it.each<[string, object]>([
    ['a GPU', { gpus: [{ useMaxPercent: 6 }] }],
    ['CPU', { cpuMaxMillis: 100 }],
    ['SSH', { sshSessions: 1 }],
    ['a port', { portConnections: 1 }],
    ['a port, shortly', { connectionsOpened: 1 }],
    ['nobody knows', { sshSessions: undefined }],
  ])('goes on when it is used in between: %s', async (_, use) => {
    const poor = await limited(15);
    await pass(poor, 14);
    await pass(poor, 1, use);
    await pass(poor, 14);
    expect(await read(poor)).toMatchObject({ status: 'running' });
    await pass(poor, 1);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    poor.agent.close();
  });

  it('goes on over a minute that nobody measured', async () => {
    const poor = await limited(15);
    await pass(poor, 14);
    world.test.advance(MINUTE_MS);
    await pass(poor, 14);
    expect(await read(poor)).toMatchObject({ status: 'running' });
    await pass(poor, 2);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    poor.agent.close();
  });

  it('is stopped in spite of new connections where only SSH is published', async () => {
    const poor = await limited(15, world.templateId);
    await pass(poor, 15, { connectionsOpened: 3 });
    await statusIs(poor.renter.api, poor.id, 'stopped');
    poor.agent.close();
  });

  it('is destroyed if its renter has said so', async () => {
    const poor = await limited(15, servingId, { on_limit: 'destroy' });
    world.test.advance(2 * MINUTE_MS);
    await pass(poor, 15);
    await statusIs(poor.renter.api, poor.id, 'destroyed');
    expect(await poor.eventKinds()).toContain('idle_stop');
    poor.agent.close();
  });

  it('is followed over a restart, after which the host says the last minutes again', async () => {
    const poor = await limited(20);
    await pass(poor, 18);
    await poor.away(10_000);
    world.test.advance(50_000 - 1_000);
    const again = [12, 8, 4, 1].map((minutes) => ({ ...NOTHING_USED, endedMsAgo: minutes * MINUTE_MS + 20 }));
    await poor.agent.measure(poor.id, ...again, NOTHING_USED);
    expect(await read(poor)).toMatchObject({ status: 'running' });
    await pass(poor, 1);
    // In its first two minutes, a control plane stops nothing.
    expect(await read(poor)).toMatchObject({ status: 'running' });
    await pass(poor, 1);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    poor.agent.close();
  });
});

describe('idle_stop_minutes', () => {
  it('counts anew when it is changed, and is taken away by null', async () => {
    const poor = await limited(15);
    await pass(poor, 14);
    await change(poor, { idle_stop_minutes: 16 });
    await pass(poor, 15);
    await change(poor, { label: 'still', idle_stop_minutes: 16 });
    expect(await read(poor)).toMatchObject({ status: 'running', idle_stop_minutes: 16 });
    await change(poor, { idle_stop_minutes: null });
    await pass(poor, 20);
    expect(await read(poor)).toMatchObject({ status: 'running', idle_stop_minutes: null });
    poor.agent.close();
  });

  it.each([0, 10_081, 1.5, '30'])('refuses %j', async (idle_stop_minutes) => {
    const poor = await makePoor(world.test, servingId);
    expect(await change(poor, { idle_stop_minutes })).toMatchObject({
      status: 422,
      body: { code: 'VALIDATION_FAILED', message: expect.stringContaining('idle_stop_minutes') as string },
    });
    expect((await read(poor)).idle_stop_minutes).toBeNull();
    poor.agent.close();
  });

  it('is given at a deploy', async () => {
    const { body } = await world.host();
    const deployed = await world.admin.api.post<Idle>('/v1/instances', { ...body, idle_stop_minutes: 45 });
    expect(deployed).toMatchObject({ idle_stop_minutes: 45, status: 'creating' });
  });

  it('leads to few events if a host says idle and busy in turn', async () => {
    const poor = await limited(1);
    const told = listening(world.test, poor.renter.organizationId);
    await pass(poor, 1);
    for (let turn = 0; turn < 40; turn++)
      for (const sshSessions of [1, 0]) await poor.agent.measure(poor.id, { ...NOTHING_USED, sshSessions });
    const events = told('instance.idle').length;
    expect(events).toBeGreaterThan(1);
    expect(events).toBeLessThan(20);
    poor.agent.close();
  });
});
