import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import { backUp, restore } from '../../control-plane/store/backup.js';
import type { InstanceBody } from '../harness/api-client.js';
import { World } from '../contract/world.js';
import { statusIs } from '../harness/control-plane.js';
import { DISK_MICRO, GPU_MICRO, HOUR_MS, makePoor, type Poor } from '../harness/poor.js';

const GPU_MICRO_A_MS = GPU_MICRO / HOUR_MS;

let world: World;
beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.test.stop());

type Limited = InstanceBody & { spend_micro: number; started_at: string };

const poorOne = () => makePoor(world.test, world.templateId);
const read = (poor: Poor) => poor.read() as Promise<Limited>;
const iso = (time: number) => new Date(time).toISOString();
const change = ({ renter, id }: Poor, body: object) =>
  renter.api.request<Limited & { code?: string }>('PATCH', `/v1/instances/${id}`, body);

describe('a limit that is changed while the host is silent', () => {
  /** The host is silent for 20 minutes, then the limit changes, and after ten more the host tells what has run. Returns what that costs. */
  const changed = async (before: object, after: (spent: number) => object) => {
    const poor = await poorOne();
    await poor.credit(100 * GPU_MICRO);
    await poor.pass(MINUTE_MS);
    const { spend_micro: spent } = await read(poor);
    await change(poor, before);
    poor.agent.disconnect();
    await poor.pass(20 * MINUTE_MS);
    expect((await change(poor, after(spent))).status).toBe(200);
    const at = world.test.clock.now();
    await poor.pass(10 * MINUTE_MS);
    await poor.agent.connect();
    await poor.pass(MINUTE_MS);
    const [{ status, spend_micro, started_at }, now] = [await read(poor), world.test.clock.now()];
    poor.agent.close();
    return {
      status,
      spend_micro,
      since: (now - at) * GPU_MICRO_A_MS,
      all: (now - Date.parse(started_at)) * GPU_MICRO_A_MS,
    };
  };

  it('and raised holds for the time before', async () => {
    const { status, spend_micro, since } = await changed({ max_charge_micro: 5_000_003 }, () => ({
      max_charge_micro: 50_000_000,
    }));
    expect([status, spend_micro]).toEqual(['running', 5_000_003 + since]);
  });

  it('and taken away holds for the time before', async () => {
    const { status, spend_micro, since } = await changed({ max_charge_micro: 5_000_003 }, () => ({
      max_charge_micro: null,
    }));
    expect([status, spend_micro]).toEqual(['running', 5_000_003 + since]);
  });

  it('and lowered holds for the time before, which is not free', async () => {
    const { status, spend_micro } = await changed({ max_charge_micro: 5_000_003 }, (spent) => ({
      max_charge_micro: spent + 1,
    }));
    expect(status).not.toBe('running');
    expect(spend_micro - 5_000_003).toBeLessThan((MINUTE_MS * DISK_MICRO) / HOUR_MS);
    expect(spend_micro).toBeGreaterThanOrEqual(5_000_003);
  });

  it('and was not used up then changes nothing', async () => {
    const { status, spend_micro, all } = await changed({ max_charge_micro: 40_000_000 }, () => ({
      max_charge_micro: 60_000_000,
    }));
    expect([status, spend_micro]).toEqual(['running', all]);
  });

  it('is kept for at most fifty changes', async () => {
    const poor = await poorOne();
    await poor.credit(100 * GPU_MICRO);
    poor.agent.disconnect();
    await poor.pass(5 * MINUTE_MS);
    for (let count = 0; count <= 50; count++) {
      world.test.advance(1_000);
      expect((await change(poor, { max_charge_micro: 50_000_000 + count })).status).toBe(200);
    }
    world.test.advance(1_000);
    const before = world.test.dump();
    expect(await change(poor, { max_charge_micro: null })).toMatchObject({
      status: 409,
      body: { code: 'INVALID_STATE' },
    });
    expect(world.test.dump()).toEqual(before);
    await poor.agent.connect();
    for (let minute = 0; minute < 3; minute++) await poor.pass(MINUTE_MS);
    expect((await change(poor, { max_charge_micro: null })).status).toBe(200);
    poor.agent.close();
  });
});

describe('a stop by a limit that the host does not carry out', () => {
  it('is asked for once, told of once, and goes on being tried', async () => {
    const poor = await poorOne();
    await poor.credit(100 * GPU_MICRO);
    await change(poor, { stop_at: iso(world.test.clock.now() + MINUTE_MS) });
    poor.agent.disconnect();
    await poor.pass(2 * MINUTE_MS);
    await statusIs(poor.renter.api, poor.id, 'stopping');
    for (let half = 0; half < 8; half++) await poor.pass(31 * MINUTE_MS);
    expect(await read(poor)).toMatchObject({ status: 'running', error_code: 'stop_timed_out' });
    const kinds = await poor.eventKinds();
    expect(kinds.filter((kind) => kind === 'stop_time_reached' || kind === 'stop_timed_out')).toEqual([
      'stop_timed_out',
      'stop_time_reached',
    ]);
    await poor.agent.connect();
    const { spend_micro } = await statusIs(poor.renter.api, poor.id, 'stopped');
    expect(spend_micro).toBeLessThan(3 * MINUTE_MS * GPU_MICRO_A_MS);
    poor.agent.close();
  });

  it('is charged again once the limit is lifted', async () => {
    const poor = await poorOne();
    await poor.credit(100 * GPU_MICRO);
    await poor.pass(MINUTE_MS);
    const { spend_micro } = await read(poor);
    poor.agent.automatic = false;
    await change(poor, { max_charge_micro: spend_micro + 1_000_003 });
    for (let half = 0; half < 3; half++) await poor.pass(31 * MINUTE_MS);
    expect(await read(poor)).toMatchObject({ status: 'running', spend_micro: spend_micro + 1_000_003 });
    await change(poor, { max_charge_micro: null });
    await poor.pass(10 * MINUTE_MS);
    expect((await read(poor)).spend_micro).toBe(spend_micro + 1_000_003 + 10 * MINUTE_MS * GPU_MICRO_A_MS);
    poor.agent.close();
  });
});

it('after a restore a limit of the backup destroys nothing, and stops', async () => {
  const { test } = world;
  const poor = await poorOne();
  await poor.credit(100 * GPU_MICRO);
  await change(poor, { stop_at: iso(test.clock.now() + HOUR_MS), on_limit: 'destroy' });
  const folder = mkdtempSync(join(tmpdir(), 'gpurent-limits-'));
  const backup = join(folder, 'backup.db');
  backUp(test.databaseFile, backup);
  // Forgotten by the backup.
  await change(poor, { stop_at: null });
  await test.leave();
  restore(backup, test.databaseFile, test.clock.now());
  rmSync(folder, { recursive: true });
  await test.boot();
  await poor.agent.connect();
  expect(await read(poor)).toMatchObject({ on_limit: 'stop' });
  for (let minute = 0; minute < 70; minute += 10) await poor.pass(10 * MINUTE_MS);
  await statusIs(poor.renter.api, poor.id, 'stopped');
  for (let minute = 0; minute < 3; minute++) await poor.pass(MINUTE_MS);
  expect((await read(poor)).status).toBe('stopped');
  poor.agent.close();
});
