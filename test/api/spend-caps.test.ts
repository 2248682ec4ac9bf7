import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import type { InstanceBody } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { World } from '../contract/world.js';
import { statusIs } from '../harness/control-plane.js';
import { DAY_MS, DISK_MICRO, GPU_MICRO, HOUR_MS, makePoor, type Poor } from '../harness/poor.js';
import { listening } from '../harness/told.js';

const NONE = { burn_per_hour_micro: null, day_micro: null, month_micro: null };

let world: World;
beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.test.stop());

interface Caps {
  spent_day_micro: number;
  spent_month_micro: number;
  present_burn_per_hour_micro: number;
  day_micro: number | null;
}

const OF_ORGANIZATION = '/v1/orgs/current/spend-caps';
const setCaps = ({ renter }: Poor, caps: object, path = OF_ORGANIZATION) =>
  renter.api.request<Caps>('PUT', path, { ...NONE, ...caps });
const readCaps = ({ renter }: Poor, path = OF_ORGANIZATION) => renter.api.get<Caps>(path);
const spendOf = async (poor: Poor) => {
  const instances = await Promise.all(
    poor.ids.map((id) => poor.read(id) as Promise<InstanceBody & { spend_micro: number }>),
  );
  return instances.map(({ spend_micro }) => spend_micro);
};
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
const start = ({ renter }: Poor, id: string) => renter.api.request('POST', `/v1/instances/${id}/start`);
const untilTomorrow = () => DAY_MS - (world.test.clock.now() % DAY_MS);

describe('a cap on the day', () => {
  it('stops every instance in the millisecond in which it is used up, and its GPU time is not charged further', async () => {
    const poor = await makePoor(world.test, world.templateId, 2);
    await poor.credit(100 * GPU_MICRO);
    await poor.pass(untilTomorrow() % HOUR_MS);
    const told = listening(world.test, poor.renter.organizationId);
    const { spent_day_micro: spent } = await readCaps(poor);
    const day_micro = spent + GPU_MICRO + 7;
    expect(await setCaps(poor, { day_micro })).toMatchObject({ status: 200, body: { day_micro } });
    const before = sum(await spendOf(poor));
    await poor.pass(HOUR_MS);
    for (const id of poor.ids) await statusIs(poor.renter.api, id, 'stopped');
    expect(sum(await spendOf(poor)) - before).toBe(GPU_MICRO + 7);
    expect((await readCaps(poor)).spent_day_micro).toBe(day_micro);
    expect(await poor.eventKinds()).toContain('spend_cap_reached');
    const data = { api_key_id: null, period: 'day', percent: 100, limit_micro: day_micro, spent_micro: day_micro };
    expect(told('billing.spend_cap').at(-1)?.data).toEqual(data);
    const [id = ''] = poor.ids;
    const held = world.test.dump();
    expect(await start(poor, id)).toMatchObject({
      status: 402,
      body: { code: 'SPEND_LIMIT_REACHED', cap: 'day', limit_micro: day_micro },
    });
    expect(world.test.dump()).toEqual(held);
    // Disks go on costing, and the GPUs are held.
    await poor.pass(HOUR_MS);
    expect(sum(await spendOf(poor)) - before).toBe(GPU_MICRO + 7 + 2 * DISK_MICRO);
    expect(await poor.read(id)).toMatchObject({ gpus_released: false });
    await poor.pass(untilTomorrow());
    expect((await start(poor, id)).status).toBe(202);
    poor.agent.close();
  });

  it('begins anew at midnight UTC', async () => {
    const poor = await makePoor(world.test, world.templateId);
    await poor.credit(100 * GPU_MICRO);
    await poor.pass(untilTomorrow() - 40 * MINUTE_MS);
    const { spent_day_micro: spent } = await readCaps(poor);
    await setCaps(poor, { day_micro: spent + GPU_MICRO - 1 });
    for (let minute = 0; minute < 60; minute += 10) await poor.pass(10 * MINUTE_MS);
    expect((await poor.read()).status).toBe('running');
    // Forty minutes yesterday, twenty today.
    expect((await readCaps(poor)).spent_day_micro).toBe(GPU_MICRO / 3);
    poor.agent.close();
  });

  it('that is raised or taken away lets go on', async () => {
    const poor = await makePoor(world.test, world.templateId);
    const { spent_day_micro: spent } = await readCaps(poor);
    await setCaps(poor, { day_micro: spent + 1 });
    await poor.pass(MINUTE_MS);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    await setCaps(poor, { day_micro: 100 * GPU_MICRO });
    expect((await start(poor, poor.id)).status).toBe(202);
    await statusIs(poor.renter.api, poor.id, 'running');
    await setCaps(poor, { day_micro: 1 });
    await poor.pass(MINUTE_MS);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    expect(await setCaps(poor, {})).toMatchObject({ body: { ...NONE, set_at: null } });
    expect((await start(poor, poor.id)).status).toBe(202);
    poor.agent.close();
  });

  it('is told of at 50, 80 and 100 percent, again on the next day', async () => {
    const poor = await makePoor(world.test, world.templateId);
    await poor.credit(100 * GPU_MICRO);
    await poor.pass(untilTomorrow());
    const told = listening(world.test, poor.renter.organizationId);
    await setCaps(poor, { day_micro: 2 * GPU_MICRO });
    const percents: unknown[] = [];
    for (let minute = 0; minute < 125; minute += 5) {
      await poor.pass(5 * MINUTE_MS);
      percents.push(...told('billing.spend_cap').map(({ data }) => data['percent']));
    }
    expect(percents).toEqual([50, 80, 100]);
    await poor.pass(untilTomorrow());
    await start(poor, poor.id);
    await statusIs(poor.renter.api, poor.id, 'running');
    await poor.pass(65 * MINUTE_MS);
    expect(told('billing.spend_cap').map(({ data }) => data['percent'])).toEqual([50]);
    poor.agent.close();
  });
});

describe('a cap that is changed', () => {
  it('while a host is silent holds for the time before', async () => {
    const poor = await makePoor(world.test, world.templateId);
    await poor.credit(100 * GPU_MICRO);
    await poor.pass(untilTomorrow());
    const { spent_day_micro: spent } = await readCaps(poor);
    await setCaps(poor, { day_micro: spent + 1_000_003, month_micro: 1_000 * GPU_MICRO });
    const [before = 0] = await spendOf(poor);
    poor.agent.disconnect();
    await poor.pass(20 * MINUTE_MS);
    await setCaps(poor, { day_micro: spent + 3 * GPU_MICRO, month_micro: 999 * GPU_MICRO });
    const at = world.test.clock.now();
    await poor.pass(10 * MINUTE_MS);
    await poor.agent.connect();
    await poor.pass(MINUTE_MS);
    expect((await poor.read()).status).toBe('running');
    const since = ((world.test.clock.now() - at) * GPU_MICRO) / HOUR_MS;
    expect((await spendOf(poor))[0]).toBe(before + 1_000_003 + since);
    poor.agent.close();
  });

  it('does not count what others have spent since for the time before', async () => {
    const poor = await makePoor(world.test, world.templateId);
    await poor.credit(100 * GPU_MICRO);
    await poor.pass(untilTomorrow());
    const { spent_day_micro: spent } = await readCaps(poor);
    await setCaps(poor, { day_micro: spent + GPU_MICRO / 2 });
    poor.agent.disconnect();
    await poor.pass(20 * MINUTE_MS);
    await setCaps(poor, { day_micro: spent + 30 * GPU_MICRO });
    const { agent, body } = await world.host();
    const other = await poor.renter.api.post<InstanceBody>('/v1/instances', body);
    await statusIs(poor.renter.api, other.id, 'running');
    for (let hour = 0; hour < 20; hour++) {
      world.test.advance(HOUR_MS);
      await agent.speak(other.id);
    }
    await poor.agent.connect();
    await poor.pass(MINUTE_MS);
    const { started_at, spend_micro } = (await poor.read()) as unknown as { started_at: string; spend_micro: number };
    expect(spend_micro).toBe(((world.test.clock.now() - Date.parse(started_at)) * GPU_MICRO) / HOUR_MS);
    for (const one of [agent, poor.agent]) one.close();
  });

  it('counts what one host reports for the time before when the next one reports', async () => {
    const poor = await makePoor(world.test, world.templateId);
    await poor.credit(100 * GPU_MICRO);
    await poor.pass(untilTomorrow());
    const { agent, body } = await world.host();
    const { id } = await poor.renter.api.post<InstanceBody & { price_per_hour_micro: number }>('/v1/instances', body);
    await statusIs(poor.renter.api, id, 'running');
    const spendOfOther = async () => ((await poor.read(id)) as InstanceBody & { spend_micro: number }).spend_micro;
    await agent.speak(id);
    await poor.pass(1_000);
    const spent = (await setCaps(poor, {})).body.spent_day_micro;
    const before = await spendOfOther();
    await setCaps(poor, { day_micro: spent + GPU_MICRO / 3 + 100_000 });
    for (const one of [agent, poor.agent]) one.disconnect();
    await poor.pass(20 * MINUTE_MS);
    await setCaps(poor, { day_micro: spent + 30 * GPU_MICRO });
    const at = world.test.clock.now();
    await poor.pass(5 * MINUTE_MS);
    await poor.agent.connect();
    await poor.pass(MINUTE_MS);
    await agent.connect();
    await agent.speak(id);
    await poor.pass(0);
    // An hour of it costs a million.
    const since = Math.floor(((world.test.clock.now() - at) * 1_000_000) / HOUR_MS);
    expect(Math.abs((await spendOfOther()) - before - 100_000 - since)).toBeLessThan(1_000);
    for (const one of [agent, poor.agent]) one.close();
  });

  it('while an instance starts undoes the start, so that it does not run for nothing', async () => {
    const poor = await makePoor(world.test, world.templateId);
    await poor.renter.api.post(`/v1/instances/${poor.id}/stop`);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    poor.agent.automatic = false;
    const answer = start(poor, poor.id);
    const command = await eventually('the start', () =>
      poor.agent.held.find(({ instanceId }) => instanceId === poor.id),
    );
    poor.agent.accept(command);
    expect((await answer).status).toBe(202);
    await setCaps(poor, { day_micro: 1 });
    expect((await poor.read()).status).toBe('stopped');
    expect((await poor.eventKinds())[0]).toBe('spend_cap_reached');
    poor.agent.automatic = true;
    await poor.agent.connect();
    await poor.pass(MINUTE_MS);
    expect((await poor.read()).status).toBe('stopped');
    poor.agent.close();
  });
});

describe('caps that expect how many instances they stop', () => {
  const expected = (poor: Poor, caps: object, expect: number | null, path?: string) =>
    setCaps(poor, { ...caps, expect }, path);
  const refusedFor = (would_stop: number) => ({ status: 409, body: { code: 'INVALID_STATE', would_stop } });

  it('are refused, and change nothing, if they are used up already and would stop more', async () => {
    const poor = await makePoor(world.test, world.templateId, 2);
    await poor.credit(100 * GPU_MICRO);
    await poor.pass(HOUR_MS);
    const { spent_day_micro: spent } = await readCaps(poor);
    const before = world.test.dump();
    for (const few of [0, 1]) {
      expect(await expected(poor, { day_micro: spent }, few)).toMatchObject(refusedFor(2));
      expect(await expected(poor, { month_micro: 1 }, few)).toMatchObject(refusedFor(2));
    }
    expect(world.test.dump()).toEqual(before);
    // Those that are not used up yet stop nothing at once.
    expect((await expected(poor, { burn_per_hour_micro: 0, day_micro: spent + 1 }, 0)).status).toBe(200);
    expect((await poor.read()).status).toBe('running');
    expect((await expected(poor, { day_micro: spent }, 2)).status).toBe(200);
    for (const id of poor.ids) await statusIs(poor.renter.api, id, 'stopped');
    expect((await expected(poor, { day_micro: 1 }, 0)).status).toBe(200);
    poor.agent.close();
  });

  it('count what waits for a silent host before it is stopped, and bound nothing if they expect nothing', async () => {
    const poor = await makePoor(world.test, world.templateId);
    await poor.pass(HOUR_MS);
    poor.agent.disconnect();
    world.test.advance(10_000);
    expect(await expected(poor, { day_micro: 1 }, 0)).toMatchObject(refusedFor(1));
    expect((await expected(poor, { day_micro: 1 }, null)).status).toBe(200);
    poor.agent.close();
  });

  it('count starts that they undo', async () => {
    const poor = await makePoor(world.test, world.templateId);
    await poor.renter.api.post(`/v1/instances/${poor.id}/stop`);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    poor.agent.automatic = false;
    const answer = start(poor, poor.id);
    const command = await eventually('the start', () =>
      poor.agent.held.find(({ instanceId }) => instanceId === poor.id),
    );
    poor.agent.accept(command);
    expect((await answer).status).toBe(202);
    expect(await expected(poor, { day_micro: 1 }, 0)).toMatchObject(refusedFor(1));
    expect((await poor.read()).status).toBe('starting');
    expect((await expected(poor, { day_micro: 1 }, 1)).status).toBe(200);
    expect((await poor.read()).status).toBe('stopped');
    poor.agent.close();
  });

  it('count for an API key only the runs that it has caused', async () => {
    const poor = await makePoor(world.test, world.templateId, 2);
    await poor.credit(100 * GPU_MICRO);
    const made = await poor.renter.api.post<{ key: { id: string }; secret: string }>('/v1/api-keys', { name: 'ci' });
    const path = `/v1/api-keys/${made.key.id}/spend-caps`;
    await poor.renter.api.post(`/v1/instances/${poor.id}/stop`);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    await poor.renter.api.as(made.secret).request('POST', `/v1/instances/${poor.id}/start`);
    await statusIs(poor.renter.api, poor.id, 'running');
    await poor.pass(HOUR_MS);
    expect(await expected(poor, { day_micro: 1 }, 0, path)).toMatchObject(refusedFor(1));
    expect((await expected(poor, { day_micro: 1 }, 1, path)).status).toBe(200);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    expect((await poor.read(poor.ids[1])).status).toBe('running');
    poor.agent.close();
  });
});

describe('what is on its way', () => {
  const commandTo = ({ agent }: Poor, instanceId: string) =>
    eventually('the command', () => agent.held.find((one) => one.instanceId === instanceId));

  it('is started only as long as a cap leaves five minutes to all of it together', async () => {
    const poor = await makePoor(world.test, world.templateId, 2);
    await poor.credit(100 * GPU_MICRO);
    const [first = '', second = ''] = poor.ids;
    for (const id of poor.ids) {
      await poor.renter.api.post(`/v1/instances/${id}/stop`);
      await statusIs(poor.renter.api, id, 'stopped');
    }
    const { spent_day_micro } = await readCaps(poor);
    await setCaps(poor, { day_micro: spent_day_micro + Math.ceil((1.5 * GPU_MICRO) / 12) });
    poor.agent.automatic = false;
    const started = start(poor, first);
    poor.agent.accept(await commandTo(poor, first));
    expect((await started).status).toBe(202);
    expect(await start(poor, second)).toMatchObject({ status: 402, body: { code: 'SPEND_LIMIT_REACHED', cap: 'day' } });
    poor.agent.close();
  });

  it('is stopped as soon as it runs if others have used a cap up meanwhile, and is not charged', async () => {
    const poor = await makePoor(world.test, world.templateId, 2);
    await poor.credit(100 * GPU_MICRO);
    const [, other = ''] = poor.ids;
    await poor.renter.api.request('DELETE', `/v1/instances/${other}`);
    await statusIs(poor.renter.api, other, 'destroyed');
    const { spent_day_micro } = await readCaps(poor);
    await setCaps(poor, { day_micro: spent_day_micro + GPU_MICRO / 4 });
    poor.agent.automatic = false;
    const body = { offer_id: poor.offerId, template_id: world.templateId, disk_gb: 10 };
    const { id } = await poor.renter.api.post<InstanceBody>('/v1/instances', body);
    const command = await commandTo(poor, id);
    poor.agent.accept(command);
    poor.agent.say({ progress: { instanceId: id, kind: 'pulling', message: 'pulling test:1: 40 %' } });
    world.test.advance(15 * MINUTE_MS);
    await poor.agent.speak(poor.id);
    world.test.advance(0);
    poor.agent.done(await commandTo(poor, poor.id));
    await statusIs(poor.renter.api, poor.id, 'stopped');
    expect((await poor.read(id)).status).toBe('creating');
    poor.agent.automatic = true;
    poor.agent.done(command);
    // It may be stopped before anybody has seen it run.
    await eventually('it to have run', async () => (await poor.read(id)).status !== 'creating');
    world.test.advance(1_000);
    await statusIs(poor.renter.api, id, 'stopped');
    const of = (path: string) => poor.renter.api.get<{ items: object[] }>(`/v1/instances/${id}/${path}`);
    const message = expect.stringContaining('the organization has spent what it may in a day') as string;
    expect((await of('events')).items).toContainEqual(expect.objectContaining({ kind: 'spend_cap_reached', message }));
    const ran = (await of('meter-intervals')).items.filter((one) => 'meter' in one && one.meter === 'gpu');
    expect(ran).toMatchObject([{ charged_ms: 0, uncovered_micro: 0 }]);
    poor.agent.close();
  });

  it('is created for nothing with no cap: one that is lowered too far is refused meanwhile', async () => {
    const poor = await makePoor(world.test, world.templateId, 2);
    await poor.credit(100 * GPU_MICRO);
    const [, other = ''] = poor.ids;
    await poor.renter.api.request('DELETE', `/v1/instances/${other}`);
    await statusIs(poor.renter.api, other, 'destroyed');
    const { key } = await poor.renter.api.post<{ key: { id: string } }>('/v1/api-keys', { name: 'ci' });
    poor.agent.automatic = false;
    const body = { offer_id: poor.offerId, template_id: world.templateId, disk_gb: 10 };
    const { id } = await poor.renter.api.post<InstanceBody>('/v1/instances', body);
    const before = world.test.dump();
    for (const caps of [{ day_micro: 1 }, { month_micro: 1 }])
      expect(await setCaps(poor, caps)).toMatchObject({
        status: 409,
        body: { code: 'INVALID_STATE', message: expect.stringContaining(id) as string },
      });
    expect(world.test.dump()).toEqual(before);
    // What stops nothing, leaves enough, or counts something else can be set.
    for (const [caps, path] of [
      [{ burn_per_hour_micro: 0 }],
      [{ day_micro: 100 * GPU_MICRO }],
      [{ day_micro: 1 }, `/v1/api-keys/${key.id}/spend-caps`],
    ] as const)
      expect((await setCaps(poor, caps, path)).status).toBe(200);
    poor.agent.automatic = true;
    poor.agent.done(await commandTo(poor, id));
    await statusIs(poor.renter.api, id, 'running');
    expect((await setCaps(poor, { day_micro: 1 })).status).toBe(200);
    poor.agent.close();
  });
});

it('a cap that is set again as it is is not told of again', async () => {
  const poor = await makePoor(world.test, world.templateId);
  await poor.credit(100 * GPU_MICRO);
  await poor.pass(untilTomorrow() + 30 * MINUTE_MS);
  const told = listening(world.test, poor.renter.organizationId);
  for (let count = 0; count < 3; count++) {
    await setCaps(poor, { day_micro: GPU_MICRO, burn_per_hour_micro: 100 * GPU_MICRO + count });
    await poor.pass(1_000);
  }
  expect(told('billing.spend_cap').map(({ data }) => data['percent'])).toEqual([50]);
  poor.agent.close();
});

it('a cap on the month counts its days together', async () => {
  const poor = await makePoor(world.test, world.templateId);
  await poor.credit(100 * GPU_MICRO);
  const { spent_month_micro: spent } = await readCaps(poor);
  await setCaps(poor, { month_micro: spent + 30 * GPU_MICRO });
  for (let hour = 0; hour < 29; hour++) await poor.pass(HOUR_MS);
  expect((await poor.read()).status).toBe('running');
  for (let hour = 0; hour < 2; hour++) await poor.pass(HOUR_MS);
  await statusIs(poor.renter.api, poor.id, 'stopped');
  expect((await readCaps(poor)).spent_month_micro - spent - 30 * GPU_MICRO).toBeLessThanOrEqual(DISK_MICRO);
  expect(await start(poor, poor.id)).toMatchObject({ status: 402, body: { cap: 'month' } });
  poor.agent.close();
});

describe('a cap on the burn', () => {
  it('refuses a deploy and a start that would go beyond it, and stops nothing', async () => {
    const poor = await makePoor(world.test, world.templateId, 2);
    await poor.credit(100 * GPU_MICRO);
    const [first = '', second = ''] = poor.ids;
    const one = GPU_MICRO + DISK_MICRO;
    await setCaps(poor, { burn_per_hour_micro: one + DISK_MICRO });
    await poor.pass(MINUTE_MS);
    expect((await poor.read(first)).status).toBe('running');
    await poor.renter.api.post(`/v1/instances/${second}/stop`);
    await statusIs(poor.renter.api, second, 'stopped');
    await poor.pass(0);
    const before = world.test.dump();
    const refused = { code: 'SPEND_LIMIT_REACHED', cap: 'burn_per_hour', limit_micro: one + DISK_MICRO };
    expect(await start(poor, second)).toMatchObject({
      status: 402,
      body: { ...refused, burn_per_hour_micro: 2 * one },
    });
    expect(world.test.dump()).toEqual(before);
    await setCaps(poor, { burn_per_hour_micro: 2 * one });
    expect((await start(poor, second)).status).toBe(202);
    poor.agent.close();
  });
});
