import { existsSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { MIB } from '../../shared/bytes.js';
import { readSecretKey } from '../../control-plane/secret-key.js';
import { Store } from '../../control-plane/store/store.js';
import { eventually } from '../../scripts/eventually.js';
import { systemClock } from '../../shared/clock.js';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { SmallDisk } from '../rig/small-disk.js';

const RESERVE_BYTES = 16 * MIB;

let disk: SmallDisk;
let folder: string;
beforeEach(() => {
  disk = new SmallDisk('72m');
  folder = join(disk.path, 'gpurent');
  mkdirSync(folder);
});
afterEach(() => disk.remove());

interface Rented {
  test: TestControlPlane;
  renter: Renter;
  body: { offer_id: string; template_id: string; disk_gb: number };
  id: string;
}

/** A control plane on the small disk, and an instance that runs. */
async function rent(): Promise<Rented> {
  const test = await TestControlPlane.start({ folder });
  await test.restart({ reserveBytes: RESERVE_BYTES });
  const renter = await test.renter();
  const offer_id = await test.offer(await test.host({ gpus: 2 }));
  const body = { offer_id, template_id: await test.template(), disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  return { test, renter, body, id };
}

const reserved = () => statSync(join(folder, 'gpurent.db.reserve'), { throwIfNoEntry: false })?.size ?? 0;

/** Lets the workers run until the reserve is whole. */
function fillReserve(test: TestControlPlane): void {
  for (let turn = 0; turn < 8 && reserved() < RESERVE_BYTES; turn++) test.advance(1_000);
  expect(reserved()).toBe(RESERVE_BYTES);
}

async function metricOf(test: TestControlPlane, name: string): Promise<number> {
  const text = await (await fetch(`${test.url}/metrics`)).text();
  return Number(new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1]);
}

const signIn = (test: TestControlPlane, { email }: Renter) =>
  test.api.request('POST', '/v1/auth/sign-in', { email, password: 'a renter password' });

/** A minute passes, in which the host speaks. */
async function passMinute(test: TestControlPlane): Promise<void> {
  for (let turn = 0; turn < 6; turn++) {
    test.advance(10_000);
    test.lastAgent.beat();
    await test.roundTrip();
  }
  test.advance(1_000);
}

/** What was charged for the instance. */
const chargedFor = async ({ api }: Renter, id: string) => {
  const { items } = await api.get<{ items: { charged_ms: number }[] }>(`/v1/instances/${id}/meter-intervals`);
  return items.reduce((sum, { charged_ms }) => sum + charged_ms, 0);
};

it('a full disk takes what ends cost, refuses what begins something, and takes everything once there is room', async () => {
  const { test, renter, body, id } = await rent();
  fillReserve(test);
  expect(await metricOf(test, 'gpurent_disk_full')).toBe(0);
  expect(await metricOf(test, 'gpurent_disk_reserve_bytes')).toBe(RESERVE_BYTES);

  disk.fill();
  test.advance(1_000);
  expect(reserved()).toBeLessThan(RESERVE_BYTES);
  expect(await metricOf(test, 'gpurent_disk_full')).toBe(1);
  expect(test.logged(50).join()).toContain('the disk of the database is full');
  const refused = await renter.api.request<{ message: string }>('POST', '/v1/instances', body);
  expect(refused).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
  expect(refused.body.message).toMatch(/disk of the control plane is full/);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  const template = { name: 'T', image: 't:1' };
  expect((await renter.api.request('POST', '/v1/templates', template)).status).toBe(503);
  const account = { email: 'new@example.com', password: 'a renter password', name: 'New' };
  expect((await test.api.request('POST', '/v1/auth/sign-up', account)).status).toBe(503);

  const before = await chargedFor(renter, id);
  await passMinute(test);
  await eventually('a charge', async () => (await chargedFor(renter, id)) > before);
  expect((await signIn(test, renter)).status).toBe(200);
  expect((await renter.api.request('POST', `/v1/instances/${id}/stop`)).status).toBe(202);
  await statusIs(renter.api, id, 'stopped');
  // Others take what the reserve has freed.
  disk.fill();
  test.advance(1_000);
  expect((await renter.api.request('POST', `/v1/instances/${id}/start`)).status).toBe(503);
  expect((await renter.api.request('DELETE', `/v1/instances/${id}`)).status).toBe(202);
  await statusIs(renter.api, id, 'destroyed');
  expect((await test.api.request('GET', '/readyz')).status).toBe(200);

  disk.makeRoom();
  test.advance(1_000);
  expect((await renter.api.request('POST', '/v1/instances', body)).status).toBe(201);
  fillReserve(test);
  expect(await metricOf(test, 'gpurent_disk_full')).toBe(0);
  await test.stop();
});

it('a disk that SQLite has found full is relieved at once', async () => {
  const { test, renter } = await rent();
  fillReserve(test);
  disk.fill();
  const template = { name: 'T', image: 't:1', readme: 'x'.repeat(60_000) };
  const answers: number[] = [];
  for (let tries = 0; tries < 200 && !answers.includes(503); tries++)
    answers.push((await renter.api.request('POST', '/v1/templates', template)).status);
  expect(answers.at(-1)).toBe(503);
  expect(reserved()).toBeLessThan(RESERVE_BYTES);
  expect((await signIn(test, renter)).status).toBe(200);
  await test.stop();
});

/** What an organization has, and what was taken from it. */
async function moneyOf({ api }: Renter): Promise<{ balance: number; spent: number }> {
  const { balance_micro } = await api.get<{ balance_micro: number }>('/v1/orgs/current');
  const { items } = await api.get<{ items: { gpu_micro: number; disk_micro: number }[] }>('/v1/billing/spend-daily');
  return { balance: balance_micro, spent: items.reduce((sum, day) => sum + day.gpu_micro + day.disk_micro, 0) };
}

it('a settlement on a disk without any room is whole or does not happen', async () => {
  const { test, renter, id } = await rent();
  await test.restart({ reserveBytes: 0 });
  await test.lastAgent.connect();
  await passMinute(test);
  const whole = await moneyOf(renter);
  disk.fill();
  for (let minute = 0; minute < 4; minute++) {
    await passMinute(test);
    const { balance, spent } = await moneyOf(renter);
    expect(balance + spent).toBe(whole.balance + whole.spent);
  }
  disk.makeRoom();
  await passMinute(test);
  await passMinute(test);
  const after = await moneyOf(renter);
  expect(after.balance + after.spent).toBe(whole.balance + whole.spent);
  expect(after.spent).toBeGreaterThan(whole.spent);
  expect(await chargedFor(renter, id)).toBeLessThanOrEqual(8 * 60_000);
  await test.stop();
});

it('a start on a full disk with a reserve signs in and destroys', async () => {
  const { test, renter, id, body } = await rent();
  fillReserve(test);
  await test.core.stop();
  disk.fill();
  await test.boot();
  await test.lastAgent.connect();
  expect((await signIn(test, renter)).status).toBe(200);
  expect((await renter.api.request('POST', '/v1/instances', body)).status).toBe(503);
  expect((await renter.api.request('DELETE', `/v1/instances/${id}`)).status).toBe(202);
  await statusIs(renter.api, id, 'destroyed');
  disk.makeRoom();
  await test.stop();
});

it('a start on a full disk without a reserve reads, and does the rest once there is room', async () => {
  const { test, renter, id, body } = await rent();
  await test.core.stop();
  disk.fill();
  await test.boot({ reserveBytes: 0 });
  expect(await renter.api.get(`/v1/instances/${id}`)).toMatchObject({ id, status: 'running' });
  expect((await test.api.request('GET', '/healthz')).status).toBe(200);
  expect((await test.api.request('GET', '/readyz')).status).toBe(503);
  expect(await metricOf(test, 'gpurent_disk_full')).toBe(1);
  expect((await renter.api.request('POST', '/v1/instances', body)).status).toBe(503);
  test.advance(1_000);
  expect(test.agents[0]?.connected).toBe(false);
  expect(test.logged(50).join()).toContain('the disk of the database is full');
  // It also stops in order, although the last use of the session is not stored.
  test.clock.advance(2 * 3_600_000);
  expect((await renter.api.request('GET', `/v1/instances/${id}`)).status).toBe(200);
  await test.restart();

  disk.makeRoom();
  test.advance(1_000);
  await eventually('hosts to be served', () => test.logged(30).some((line) => line.includes('hosts are served')));
  await test.lastAgent.connect();
  expect((await renter.api.request('DELETE', `/v1/instances/${id}`)).status).toBe(202);
  await statusIs(renter.api, id, 'destroyed');
  // Others can read it, too.
  expect(test.everythingStored()).toContain(id);
  await test.stop();
});

it('a new control plane on a full disk says so in one line, and starts once there is room', () => {
  disk.fill();
  const key = join(folder, 'gpurent.db.key');
  const database = join(folder, 'gpurent.db');
  expect(() => readSecretKey(key, database)).toThrow(/no space is left on its disk/);
  // What a full disk has left of it would be taken for the key.
  expect(existsSync(key)).toBe(false);
  expect(() => new Store(database, systemClock)).toThrow(/cannot be used: no space is left on its disk/);
  disk.makeRoom();
  new Store(database, systemClock).close();
  expect(readSecretKey(key, join(folder, 'other.db'))).toHaveLength(32);
});
