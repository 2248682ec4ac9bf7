import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import type { InstanceBody } from '../harness/api-client.js';
import { World } from '../contract/world.js';
import { statusIs } from '../harness/control-plane.js';
import { DISK_MICRO, GPU_MICRO, HOUR_MS, makePoor, type Poor } from '../harness/poor.js';
import { listening } from '../harness/told.js';

const GPU_MICRO_A_MS = GPU_MICRO / HOUR_MS;

let world: World;
beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.test.stop());

type Limited = InstanceBody & {
  stop_at: string | null;
  max_charge_micro: number | null;
  on_limit: string | null;
  spend_micro: number;
  label: string | null;
  started_at: string;
};

const poorOne = () => makePoor(world.test, world.templateId);
const read = (poor: Poor) => poor.read() as Promise<Limited>;
const iso = (time: number) => new Date(time).toISOString();

/** Changes an instance, and returns the answer. */
const change = ({ renter, id }: Poor, body: object) =>
  renter.api.request<Limited & { code?: string }>('PATCH', `/v1/instances/${id}`, body);
const start = ({ renter, id }: Poor) =>
  renter.api.request<{ code: string; cap: string; limit_micro: number | null }>('POST', `/v1/instances/${id}/start`);

describe('stop_at', () => {
  it('stops the instance in its millisecond, and no GPU time after it is charged', async () => {
    const poor = await poorOne();
    const { spend_micro: before } = await read(poor);
    const at = world.test.clock.now() + 30 * MINUTE_MS + 7;
    expect((await change(poor, { stop_at: iso(at) })).body).toMatchObject({ stop_at: iso(at), status: 'running' });
    const began = Date.parse((await read(poor)).started_at);
    await poor.pass(HOUR_MS);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    const { spend_micro } = await read(poor);
    expect([before, spend_micro]).toEqual([expect.any(Number), (at - began) * GPU_MICRO_A_MS]);
    expect(await poor.eventKinds()).toContain('stop_time_reached');
    poor.agent.close();
  });

  it('stops what comes up only after it, for nothing', async () => {
    const { test, templateId } = world;
    const poor = await poorOne();
    poor.agent.automatic = false;
    const body = {
      offer_id: poor.offerId,
      template_id: templateId,
      disk_gb: 10,
      stop_at: iso(test.clock.now() + 5 * MINUTE_MS),
    };
    await poor.renter.api.request('DELETE', `/v1/instances/${poor.id}`);
    poor.agent.automatic = true;
    await poor.agent.connect();
    await statusIs(poor.renter.api, poor.id, 'destroyed');
    poor.agent.automatic = false;
    const { id } = await poor.renter.api.post<Limited>('/v1/instances', body);
    test.advance(6 * MINUTE_MS);
    poor.agent.automatic = true;
    await poor.agent.connect();
    await statusIs(poor.renter.api, id, 'stopped');
    expect((await poor.read(id)).spend_micro).toBe(0);
    poor.agent.close();
  });

  it('that is past refuses a start until it is changed', async () => {
    const poor = await poorOne();
    await change(poor, { stop_at: iso(world.test.clock.now() + MINUTE_MS) });
    await poor.pass(HOUR_MS);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    await poor.pass(0);
    const before = world.test.dump();
    expect(await start(poor)).toMatchObject({
      status: 402,
      body: {
        code: 'SPEND_LIMIT_REACHED',
        cap: 'stop_at',
        limit_micro: null,
        burn_per_hour_micro: expect.any(Number) as number,
      },
    });
    expect(world.test.dump()).toEqual(before);
    const { stop_at, max_charge_micro, idle_stop_minutes, on_limit } = (await read(poor)) as Limited & {
      idle_stop_minutes: null;
    };
    const limits = { stop_at, max_charge_micro, idle_stop_minutes, on_limit };
    expect(Date.parse(stop_at ?? '')).toBeLessThan(world.test.clock.now());
    for (const body of [{ label: 'renamed' }, { label: 'again', ...limits }])
      expect((await change(poor, body)).body).toMatchObject({ label: body.label, stop_at });
    const earlier = { label: 'no', stop_at: iso(Date.parse(stop_at ?? '') - 1) };
    expect(await change(poor, earlier)).toMatchObject({ status: 422, body: { code: 'VALIDATION_FAILED' } });
    expect((await read(poor)).label).toBe('again');
    expect((await change(poor, { stop_at: null })).body.stop_at).toBeNull();
    expect((await start(poor)).status).toBe(202);
    poor.agent.close();
  });
});

describe('max_charge_micro', () => {
  it('is what the instance costs at most in GPU time, to the micro-dollar, and its disk goes on', async () => {
    const { test } = world;
    const poor = await poorOne();
    const told = listening(test, poor.renter.organizationId);
    await change(poor, { max_charge_micro: 5_000_003 });
    await poor.pass(HOUR_MS);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    expect((await read(poor)).spend_micro).toBe(5_000_003);
    expect(await poor.eventKinds()).toContain('charge_limit_reached');
    const percents = told('instance.charge_limit').map(({ data }) => data['percent']);
    expect(percents).toEqual([100]);
    await poor.pass(HOUR_MS);
    expect((await read(poor)).spend_micro).toBe(5_000_003 + DISK_MICRO);
    expect(await start(poor)).toMatchObject({ status: 402, body: { cap: 'max_charge', limit_micro: 5_000_003 } });
    await change(poor, { max_charge_micro: 50_000_000 });
    expect((await start(poor)).status).toBe(202);
    poor.agent.close();
  });

  it('is told of at each step, once', async () => {
    const poor = await poorOne();
    const told = listening(world.test, poor.renter.organizationId);
    await change(poor, { max_charge_micro: GPU_MICRO });
    const percents: unknown[] = [];
    for (let minute = 0; minute < 61; minute++) {
      await poor.pass(MINUTE_MS);
      percents.push(...told('instance.charge_limit').map(({ data }) => [minute, data['percent']]));
    }
    expect(percents).toEqual([
      [expect.closeTo(29, -1), 50],
      [expect.closeTo(47, -1), 80],
      [expect.closeTo(59, -1), 100],
    ]);
    poor.agent.close();
  });

  it('that would stop at once is refused to who expects that it does not, and changes nothing', async () => {
    const poor = await poorOne();
    await poor.pass(10 * MINUTE_MS);
    const { spend_micro: spent } = await read(poor);
    const used = { max_charge_micro: spent, label: 'renamed' };
    const before = world.test.dump();
    expect(await change(poor, { ...used, expect: 0 })).toMatchObject({
      status: 409,
      body: { code: 'INVALID_STATE', would_stop: 1, message: expect.stringMatching(/send expect 1/) as string },
    });
    expect(world.test.dump()).toEqual(before);
    expect((await change(poor, { max_charge_micro: spent + 1, expect: 0 })).status).toBe(200);
    expect((await read(poor)).status).toBe('running');
    const answer = await change(poor, { ...used, expect: 1 });
    expect(answer).toMatchObject({ status: 200, body: { max_charge_micro: spent, label: 'renamed' } });
    await statusIs(poor.renter.api, poor.id, 'stopped');
    // What is stopped already is not stopped by it.
    expect((await change(poor, { max_charge_micro: 1, expect: 0 })).status).toBe(200);
    poor.agent.close();
  });

  it('of a silent host, which stops once it has told what it ran, is refused as well', async () => {
    const poor = await poorOne();
    await poor.pass(MINUTE_MS);
    const { spend_micro: spent } = await read(poor);
    poor.agent.disconnect();
    world.test.advance(20_000);
    expect((await change(poor, { max_charge_micro: spent + 1, expect: 0 })).status).toBe(409);
    expect((await change(poor, { max_charge_micro: spent + 1, expect: null })).status).toBe(200);
    poor.agent.close();
  });

  it('that is set below what was spent stops at once, and makes nothing free of before', async () => {
    const poor = await poorOne();
    await poor.pass(10 * MINUTE_MS);
    // Of the last seconds the host has said nothing yet.
    world.test.advance(20_000);
    const at = world.test.clock.now();
    await change(poor, { max_charge_micro: 1 });
    const began = Date.parse((await read(poor)).started_at);
    await poor.pass(MINUTE_MS);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    const { spend_micro } = await read(poor);
    expect(spend_micro - (at - began) * GPU_MICRO_A_MS).toBeLessThanOrEqual((MINUTE_MS * DISK_MICRO) / HOUR_MS);
    expect(spend_micro).toBeGreaterThanOrEqual((at - began) * GPU_MICRO_A_MS);
    poor.agent.close();
  });

  it('holds for a host that is silent meanwhile', async () => {
    const poor = await poorOne();
    await change(poor, { max_charge_micro: 2_000_000 });
    poor.agent.disconnect();
    await poor.pass(HOUR_MS);
    await poor.agent.connect();
    await poor.pass(MINUTE_MS);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    const { spend_micro } = await read(poor);
    expect(spend_micro).toBeGreaterThanOrEqual(2_000_000);
    expect(spend_micro - 2_000_000).toBeLessThan((MINUTE_MS * DISK_MICRO) / HOUR_MS);
    poor.agent.close();
  });
});

describe('on_limit: destroy', () => {
  it.each([
    ['stop_at', () => ({ stop_at: iso(world.test.clock.now() + MINUTE_MS) })],
    ['max_charge_micro', () => ({ max_charge_micro: 1_000_000 })],
  ])('destroys a running instance by %s', async (_, limit) => {
    const poor = await poorOne();
    await change(poor, { ...limit(), on_limit: 'destroy' });
    await poor.pass(HOUR_MS);
    await statusIs(poor.renter.api, poor.id, 'destroyed');
    poor.agent.close();
  });

  it('destroys a stopped instance, too, whose disk goes on costing', async () => {
    const poor = await poorOne();
    await poor.renter.api.post(`/v1/instances/${poor.id}/stop`);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    const { spend_micro } = await read(poor);
    await change(poor, { max_charge_micro: spend_micro + DISK_MICRO, on_limit: 'destroy' });
    for (let minute = 0; minute < 30; minute++) await poor.pass(MINUTE_MS);
    expect((await poor.read()).status).toBe('stopped');
    for (let minute = 0; minute < 31; minute++) await poor.pass(MINUTE_MS);
    await statusIs(poor.renter.api, poor.id, 'destroyed');
    poor.agent.close();
  });

  it('only stops while an operator must confirm the clock', async () => {
    const { test } = world;
    const poor = await poorOne();
    await change(poor, { stop_at: iso(test.clock.now() + 5 * HOUR_MS), on_limit: 'destroy' });
    test.clock.step(6 * HOUR_MS);
    await poor.pass(MINUTE_MS);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    await test.operator.post('/v1/operator/clock/confirm', {});
    poor.agent.close();
  });
});

describe('a change', () => {
  it('leaves what it does not name, and is kept', async () => {
    const poor = await poorOne();
    const stop_at = iso(world.test.clock.now() + HOUR_MS);
    await change(poor, { label: 'mine', stop_at, max_charge_micro: 7, on_limit: 'destroy' });
    await change(poor, { label: null, max_charge_micro: 70_000_000 });
    expect(await read(poor)).toMatchObject({ label: null, stop_at, max_charge_micro: 70_000_000, on_limit: 'destroy' });
    poor.agent.close();
  });

  it.each([
    ['a time that is past', () => ({ stop_at: iso(world.test.clock.now()) }), 422, 'VALIDATION_FAILED'],
    ['a time that is none', () => ({ stop_at: 'tomorrow' }), 422, 'VALIDATION_FAILED'],
    ['an amount of nothing', () => ({ max_charge_micro: 0 }), 422, 'VALIDATION_FAILED'],
    ['another end', () => ({ on_limit: 'pause' }), 422, 'VALIDATION_FAILED'],
  ])('to %s is refused, and nothing changes', async (_, body, status, code) => {
    const poor = await poorOne();
    const before = world.test.dump();
    expect(await change(poor, body())).toMatchObject({ status, body: { code } });
    expect(world.test.dump()).toEqual(before);
    poor.agent.close();
  });

  it('of an instance that is destroyed is refused', async () => {
    const poor = await poorOne();
    await poor.renter.api.request('DELETE', `/v1/instances/${poor.id}`);
    await statusIs(poor.renter.api, poor.id, 'destroyed');
    const before = world.test.dump();
    expect(await change(poor, { label: 'x' })).toMatchObject({ status: 409, body: { code: 'INVALID_STATE' } });
    expect(world.test.dump()).toEqual(before);
    poor.agent.close();
  });
});

describe('a limit that leaves less than five minutes', () => {
  it('of GPU time refuses a deploy and a start', async () => {
    const { test } = world;
    const poor = await poorOne();
    const near = { max_charge_micro: GPU_MICRO / 12 - 1 };
    const other = await test.renter(10 * GPU_MICRO);
    const { body: offer } = await world.host();
    const before = test.dump();
    for (const limits of [{ max_charge_micro: 1 }, { stop_at: iso(test.clock.now() + 5 * MINUTE_MS - 1) }])
      expect(await other.api.request('POST', '/v1/instances', { ...offer, ...limits })).toMatchObject({
        status: 402,
        body: { code: 'SPEND_LIMIT_REACHED' },
      });
    expect(test.dump()).toEqual(before);
    await poor.renter.api.post(`/v1/instances/${poor.id}/stop`);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    await poor.pass(0);
    const { spend_micro } = await read(poor);
    await change(poor, { max_charge_micro: spend_micro + near.max_charge_micro });
    expect(await start(poor)).toMatchObject({ status: 402, body: { cap: 'max_charge' } });
    await change(poor, { max_charge_micro: spend_micro + near.max_charge_micro + 1 });
    expect((await start(poor)).status).toBe(202);
    poor.agent.close();
  });

  it('cannot be set while the instance is on its way', async () => {
    const poor = await poorOne();
    await poor.renter.api.post(`/v1/instances/${poor.id}/stop`);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    poor.agent.automatic = false;
    void start(poor);
    await statusIs(poor.renter.api, poor.id, 'starting');
    const { spend_micro } = await read(poor);
    for (const body of [{ max_charge_micro: spend_micro + 1 }, { stop_at: iso(world.test.clock.now() + MINUTE_MS) }]) {
      const before = world.test.dump();
      expect(await change(poor, body)).toMatchObject({ status: 422, body: { code: 'VALIDATION_FAILED' } });
      expect(world.test.dump()).toEqual(before);
    }
    poor.agent.close();
  });
});

it('a change that would destroy at once is refused', async () => {
  const poor = await poorOne();
  await poor.pass(HOUR_MS);
  const before = world.test.dump();
  const destroys = { max_charge_micro: 5, on_limit: 'destroy' };
  expect(await change(poor, destroys)).toMatchObject({ status: 422, body: { code: 'VALIDATION_FAILED' } });
  expect(world.test.dump()).toEqual(before);
  poor.agent.close();
});

it('in the first two minutes of a control plane nothing is destroyed by a limit, only stopped', async () => {
  const poor = await poorOne();
  await poor.credit(100 * GPU_MICRO);
  await change(poor, { stop_at: iso(world.test.clock.now() + HOUR_MS), on_limit: 'destroy' });
  await poor.away(2 * HOUR_MS);
  await statusIs(poor.renter.api, poor.id, 'stopped');
  for (let minute = 0; minute < 3; minute++) await poor.pass(MINUTE_MS);
  await statusIs(poor.renter.api, poor.id, 'destroyed');
  poor.agent.close();
});

it('a deploy takes limits, and refuses a time that is past', async () => {
  const { test, admin } = world;
  const { agent, body } = await world.host();
  const stop_at = iso(test.clock.now() + HOUR_MS);
  const past = { ...body, stop_at: iso(test.clock.now()) };
  const before = test.dump();
  expect(await admin.api.request('POST', '/v1/instances', past)).toMatchObject({ status: 422 });
  expect(test.dump()).toEqual(before);
  const limits = { stop_at, max_charge_micro: 1_000_000, on_limit: 'stop' };
  expect(await admin.api.post('/v1/instances', { ...body, ...limits })).toMatchObject(limits);
  agent.close();
});
