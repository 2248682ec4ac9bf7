import { expect, it } from 'vitest';
import { heldGpus, inHours } from '../../console/src/data/instances/instances.js';
import { priceOf } from '../../console/src/data/values/money.js';
import { lastingSince } from '../../console/src/data/values/times.js';
import { chargesOf } from '../../console/src/pages/instance/runs.js';

it('says for how long something has been so', () => {
  const now = Date.parse('2026-11-26T12:00:00.000Z');
  expect(lastingSince('2026-11-26T11:16:00.000Z', now)).toBe('for 44 min');
  expect(lastingSince('2026-11-26T11:59:58.000Z', now)).toBe('just now');
  // The clock of the reader is behind.
  expect(lastingSince('2026-11-26T12:00:30.000Z', now)).toBe('just now');
});

it('tells whether a stopped instance has its GPUs, and until when', () => {
  const until = '2026-11-27T12:00:00.000Z';
  const stopped = { status: 'stopped', gpus_released: false, gpu_release: null, releases_gpus_at: null } as const;
  expect(heldGpus({ ...stopped, status: 'running' })).toBeUndefined();
  expect(heldGpus(stopped)).toEqual({ state: 'kept', until: null });
  expect(heldGpus({ ...stopped, releases_gpus_at: until })).toEqual({ state: 'kept', until });
  expect(heldGpus({ ...stopped, gpu_release: 'pending' })).toEqual({ state: 'releasing' });
  expect(heldGpus({ ...stopped, gpu_release: 'unsupported' })).toEqual({ state: 'unreleasable' });
  expect(heldGpus({ ...stopped, gpus_released: true, gpu_release: 'released' })).toEqual({ state: 'released' });
  expect([inHours(1), inHours(24)]).toEqual(['1 hour', '24 hours']);
});

it('says what each run has cost, so that all together are exactly what was charged', () => {
  const rates = { gpu: 1_000_001, disk: 77 };
  const run = (meter: 'gpu' | 'disk', charged_ms: number, uncovered_micro = 0) => ({
    meter,
    charged_ms,
    uncovered_micro,
  });
  const intervals = [
    run('gpu', 1_799_999, 3),
    run('disk', 3_599_999),
    run('gpu', 1_801),
    run('disk', 1),
    run('gpu', 2),
  ];
  const charges = chargesOf(intervals, rates);
  const sumOf = (meter: 'gpu' | 'disk') =>
    charges.filter((_, index) => intervals[index]?.meter === meter).reduce((sum, each) => sum + each, 0);
  expect(sumOf('gpu')).toBe(priceOf(rates.gpu, 1_799_999 + 1_801 + 2) - 3);
  expect(sumOf('disk')).toBe(77);
  // The oldest is the last, and its part of a micro-dollar counts for the next.
  expect(charges.slice(-2)).toEqual([0, 0]);
  expect(chargesOf([], rates)).toEqual([]);
});
