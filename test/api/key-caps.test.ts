import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WEEKDAYS } from '../../control-plane/domain/instances/schedule.js';
import type { InstanceBody } from '../harness/api-client.js';
import { World } from '../contract/world.js';
import { statusIs } from '../harness/control-plane.js';
import { DAY_MS, DISK_MICRO, GPU_MICRO, HOUR_MS, makePoor, type Poor } from '../harness/poor.js';

const NONE = { burn_per_hour_micro: null, day_micro: null, month_micro: null };

let world: World;
beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.test.stop());

interface Caps {
  spent_day_micro: number;
  present_burn_per_hour_micro: number;
}

const setCaps = ({ renter }: Poor, caps: object, path: string) =>
  renter.api.request<Caps>('PUT', path, { ...NONE, ...caps });
const readCaps = ({ renter }: Poor, path: string) => renter.api.get<Caps>(path);
const start = ({ renter }: Poor, id: string) => renter.api.request('POST', `/v1/instances/${id}/start`);
const untilTomorrow = () => DAY_MS - (world.test.clock.now() % DAY_MS);

describe('the caps of an API key', () => {
  /** A key with caps, in an organization that has money. */
  async function cappedKey(poor: Poor, caps: object) {
    await poor.credit(100 * GPU_MICRO);
    const made = { name: 'ci', spend_caps: caps };
    const { key, secret } = await poor.renter.api.post<{ key: { id: string }; secret: string }>('/v1/api-keys', made);
    return { id: key.id, api: poor.renter.api.as(secret), path: `/v1/api-keys/${key.id}/spend-caps` };
  }
  const stopped = async (poor: Poor) => {
    await poor.renter.api.post(`/v1/instances/${poor.id}/stop`);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    await poor.pass(0);
  };

  it('count and stop the runs that the key has caused by a deploy, also once it is revoked', async () => {
    const poor = await makePoor(world.test, world.templateId, 2);
    const key = await cappedKey(poor, { day_micro: 10 * GPU_MICRO });
    const [, other = ''] = poor.ids;
    await poor.renter.api.request('DELETE', `/v1/instances/${other}`);
    await statusIs(poor.renter.api, other, 'destroyed');
    const body = { offer_id: poor.offerId, template_id: world.templateId, disk_gb: 10 };
    const its = await key.api.post<InstanceBody>('/v1/instances', body);
    await statusIs(poor.renter.api, its.id, 'running');
    poor.ids[1] = its.id;
    await setCaps(poor, { day_micro: GPU_MICRO / 2 }, key.path);
    await poor.renter.api.delete(`/v1/api-keys/${key.id}`);
    await poor.pass(HOUR_MS);
    await statusIs(poor.renter.api, its.id, 'stopped');
    expect((await readCaps(poor, key.path)).spent_day_micro).toBe(GPU_MICRO / 2);
    expect((await poor.read()).status).toBe('running');
    // A run that a person starts counts only for the organization; the disk goes on counting for the key.
    await poor.pass(HOUR_MS);
    expect((await readCaps(poor, key.path)).spent_day_micro).toBe(GPU_MICRO / 2 + DISK_MICRO);
    expect((await start(poor, its.id)).status).toBe(202);
    await statusIs(poor.renter.api, its.id, 'running');
    await poor.pass(HOUR_MS);
    expect((await poor.read(its.id)).status).toBe('running');
    expect((await readCaps(poor, key.path)).spent_day_micro).toBeLessThan(GPU_MICRO);
    poor.agent.close();
  });

  it("bound the key's start of an instance that somebody else has deployed", async () => {
    const poor = await makePoor(world.test, world.templateId, 2);
    const key = await cappedKey(poor, { burn_per_hour_micro: GPU_MICRO - 1 });
    await poor.pass(untilTomorrow());
    await stopped(poor);
    const before = world.test.dump();
    const startByKey = () => key.api.request('POST', `/v1/instances/${poor.id}/start`);
    expect(await startByKey()).toMatchObject({ status: 402, body: { cap: 'burn_per_hour' } });
    expect(world.test.dump()).toEqual(before);
    for (const period of ['day', 'month']) {
      await setCaps(poor, { [`${period}_micro`]: 1 }, key.path);
      expect(await startByKey()).toMatchObject({ status: 402, body: { cap: period } });
    }
    const day_micro = GPU_MICRO / 2;
    await setCaps(poor, { burn_per_hour_micro: GPU_MICRO, day_micro }, key.path);
    expect((await startByKey()).status).toBe(202);
    await statusIs(poor.renter.api, poor.id, 'running');
    expect((await readCaps(poor, key.path)).present_burn_per_hour_micro).toBe(GPU_MICRO);
    const choice = { offer_id: poor.offerId, template_id: world.templateId, disk_gb: 10, ssh_key_id: null };
    const { refusals } = await key.api.post<{ refusals: { code: string; cap?: string }[] }>(
      '/v1/instances/estimate',
      choice,
    );
    expect(refusals).toContainEqual(expect.objectContaining({ code: 'SPEND_LIMIT_REACHED', cap: 'burn_per_hour' }));
    await poor.pass(HOUR_MS);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    expect((await readCaps(poor, key.path)).spent_day_micro).toBe(day_micro);
    // Who has deployed it stays, and so does spending by key.
    expect(await poor.read()).toMatchObject({ deployed_via_api_key: null });
    const { items } = await poor.renter.api.get<{ items: { api_key: unknown }[] }>(
      '/v1/billing/summary?group_by=api_key',
    );
    expect(JSON.stringify(items)).not.toContain(key.id);
    expect((await start(poor, poor.id)).status).toBe(202);
    poor.agent.close();
  });

  it('let it loosen only limits of its own runs, and refuse nothing that saves money', async () => {
    const poor = await makePoor(world.test, world.templateId);
    const key = await cappedKey(poor, { month_micro: 20 * GPU_MICRO });
    const at = (ms: number) => new Date(world.test.clock.now() + ms).toISOString();
    const limits = {
      stop_at: at(5 * HOUR_MS),
      max_charge_micro: 50 * GPU_MICRO,
      idle_stop_minutes: 60,
      on_limit: 'destroy',
    };
    const change = (settings: object) => key.api.request('PATCH', `/v1/instances/${poor.id}`, settings);
    expect((await poor.renter.api.request('PATCH', `/v1/instances/${poor.id}`, limits)).status).toBe(200);
    await poor.pass(1_000);
    const looser = [
      { stop_at: null },
      { stop_at: at(6 * HOUR_MS) },
      { max_charge_micro: null },
      { max_charge_micro: 50 * GPU_MICRO + 1 },
      { idle_stop_minutes: null },
      { idle_stop_minutes: 61 },
      { on_limit: null },
      { max_charge_micro: 1 + 50 * GPU_MICRO, stop_at: at(HOUR_MS) },
    ];
    const before = world.test.dump();
    const refused = { status: 402, body: { code: 'SPEND_LIMIT_REACHED', cap: 'month', limit_micro: 20 * GPU_MICRO } };
    for (const settings of looser) expect(await change(settings)).toMatchObject(refused);
    expect(world.test.dump()).toEqual(before);
    const tighter = {
      stop_at: at(4 * HOUR_MS),
      max_charge_micro: 40 * GPU_MICRO,
      idle_stop_minutes: 30,
      label: 'mine',
    };
    await setCaps(poor, { month_micro: 0 }, key.path);
    expect((await change(tighter)).status).toBe(200);
    const entries = [{ action: 'stop', days: ['monday'], at: '23:59' }];
    const schedule = `/v1/instances/${poor.id}/schedule`;
    await poor.renter.api.request('PUT', schedule, { time_zone: 'UTC', entries });
    expect((await key.api.request('DELETE', schedule)).status).toBe(204);
    expect((await key.api.request('POST', `/v1/instances/${poor.id}/stop`)).status).toBe(202);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    // Of what is stopped, the last run decides.
    expect((await change({ max_charge_micro: null })).status).toBe(402);
    await setCaps(poor, { month_micro: 20 * GPU_MICRO }, key.path);
    expect((await key.api.request('POST', `/v1/instances/${poor.id}/start`)).status).toBe(202);
    await statusIs(poor.renter.api, poor.id, 'running');
    for (const settings of looser) expect((await change(settings)).status).toBe(200);
    await stopped(poor);
    expect((await change({ max_charge_micro: null })).status).toBe(200);
    // A key without caps changes what it likes.
    await setCaps(poor, {}, key.path);
    expect((await start(poor, poor.id)).status).toBe(202);
    expect((await change({ max_charge_micro: null, stop_at: null })).status).toBe(200);
    expect((await key.api.request('DELETE', `/v1/instances/${poor.id}`)).status).toBe(202);
    poor.agent.close();
  });

  it('count the runs of a schedule that the key has set, also after it has ended', async () => {
    const poor = await makePoor(world.test, world.templateId);
    const key = await cappedKey(poor, { day_micro: GPU_MICRO / 2 });
    await poor.pass(untilTomorrow());
    await stopped(poor);
    const entries = [{ action: 'start', days: [...WEEKDAYS], at: '01:00' }];
    const schedule = `/v1/instances/${poor.id}/schedule`;
    expect((await key.api.request('PUT', schedule, { time_zone: 'UTC', entries })).status).toBe(200);
    await poor.renter.api.delete(`/v1/api-keys/${key.id}`);
    /** Its host must have been heard a moment before. */
    const untilItsStart = async () => {
      await poor.pass(HOUR_MS - 10_000);
      await poor.pass(10_000);
    };
    for (let day = 0; day < 3; day++) {
      await untilItsStart();
      await statusIs(poor.renter.api, poor.id, 'running');
      await poor.pass(HOUR_MS);
      await statusIs(poor.renter.api, poor.id, 'stopped');
      expect((await readCaps(poor, key.path)).spent_day_micro).toBe(GPU_MICRO / 2);
      await poor.pass(untilTomorrow());
    }
    // What a person sets counts for no key.
    await poor.renter.api.request('PUT', schedule, { time_zone: 'UTC', entries });
    await untilItsStart();
    await statusIs(poor.renter.api, poor.id, 'running');
    await poor.pass(HOUR_MS);
    expect((await poor.read()).status).toBe('running');
    poor.agent.close();
  });

  it('of another organization are unknown', async () => {
    const poor = await makePoor(world.test, world.templateId);
    const { key } = await world.admin.api.post<{ key: { id: string } }>('/v1/api-keys', { name: 'theirs' });
    const before = world.test.dump();
    expect(await setCaps(poor, { day_micro: 1 }, `/v1/api-keys/${key.id}/spend-caps`)).toMatchObject({
      status: 404,
      body: { code: 'API_KEY_NOT_FOUND' },
    });
    expect(world.test.dump()).toEqual(before);
    poor.agent.close();
  });
});
