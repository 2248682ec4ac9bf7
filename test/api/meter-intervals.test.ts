import { afterAll, beforeAll, expect, it } from 'vitest';
import type { components } from '../../client/api/index.js';
import { TestControlPlane, statusIs } from '../harness/control-plane.js';
import { DISK_MICRO, GPU_MICRO, HOUR_MS, makePoor, type Poor } from '../harness/poor.js';

type Interval = components['schemas']['MeterInterval'];

let test: TestControlPlane;
let templateId: string;
beforeAll(async () => {
  test = await TestControlPlane.start();
  templateId = await test.template();
});
afterAll(() => test.stop());

const intervalsOf = ({ renter, id }: Poor, query = '') =>
  renter.api.get<{ items: Interval[]; next_cursor: string | null }>(`/v1/instances/${id}/meter-intervals${query}`);

/** Adds up what the document says that all charges for one meter are. */
function priceOf(items: readonly Interval[], of: Interval['meter'], rate: number): number {
  const its = items.filter(({ meter }) => meter === of);
  const [ms, uncovered] = [its.map((each) => each.charged_ms), its.map((each) => each.uncovered_micro)].map((each) =>
    each.reduce((sum, value) => sum + value, 0),
  );
  return Math.floor((rate * (ms ?? NaN)) / HOUR_MS) - (uncovered ?? NaN);
}

async function chargedFor({ renter, id }: Poor, of: Interval['meter']): Promise<number> {
  const path = `/v1/billing/transactions?instance_id=${id}`;
  const { items } = await renter.api.get<{ items: { meter: string; amount_micro: number }[] }>(path);
  return items.filter(({ meter }) => meter === of).reduce((sum, { amount_micro }) => sum - amount_micro, 0);
}

it('gives the times on which charges rest, to the micro-dollar, also where the balance ran out in a millisecond', async () => {
  const poor = await makePoor(test, templateId);
  const act = async (what: 'start' | 'stop', status: string) => {
    await poor.renter.api.post(`/v1/instances/${poor.id}/${what}`);
    await statusIs(poor.renter.api, poor.id, status);
  };
  await poor.pass(1_234_567);
  await act('stop', 'stopped');
  await poor.pass(2_654_321);
  await act('start', 'running');
  const { items: open } = await intervalsOf(poor);
  expect(open.map(({ meter, ended_at }) => [meter, ended_at === null])).toEqual([
    ['gpu', true],
    ['disk', false],
    ['gpu', false],
  ]);
  // Now the balance covers a part of the price of a millisecond.
  await poor.credit(7);
  await poor.pass(3 * HOUR_MS);
  await statusIs(poor.renter.api, poor.id, 'stopped');
  await poor.pass(1_000);
  const { items } = await intervalsOf(poor);
  expect(items.map(({ meter }) => meter)).toEqual(['disk', 'gpu', 'disk', 'gpu']);
  expect(items[1]?.uncovered_micro).toBeGreaterThan(0);
  expect(priceOf(items, 'gpu', GPU_MICRO)).toBe(await chargedFor(poor, 'gpu'));
  expect(priceOf(items, 'disk', DISK_MICRO)).toBe(await chargedFor(poor, 'disk'));
  expect(items[3]).toMatchObject({ charged_ms: 1_234_567 });
});

it('has at most the page that was asked for, and nothing for others', async () => {
  const poor = await makePoor(test, templateId);
  await poor.pass(60_000);
  await poor.renter.api.post(`/v1/instances/${poor.id}/stop`);
  await statusIs(poor.renter.api, poor.id, 'stopped');
  const first = await intervalsOf(poor, '?limit=1');
  expect(first.items.map(({ meter }) => meter)).toEqual(['disk']);
  const second = await intervalsOf(poor, `?limit=1&cursor=${first.next_cursor}`);
  expect(second).toMatchObject({ items: [{ meter: 'gpu' }], next_cursor: null });
  const other = await test.renter(0);
  const answer = await other.api.request('GET', `/v1/instances/${poor.id}/meter-intervals`);
  expect(answer).toMatchObject({ status: 404, body: { code: 'INSTANCE_NOT_FOUND' } });
});
