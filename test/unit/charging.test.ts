import { describe, expect, it } from 'vitest';
import { HOUR_MS } from '../../shared/time.js';
import { TokenBucket } from '../../control-plane/domain/token-bucket.js';
import { charge } from '../../control-plane/domain/money/charge.js';
import { windowAfter } from '../../control-plane/domain/money/charge-window.js';
import { isPlausible } from '../../control-plane/domain/instances/command.js';
import { AUTO_DESTROY, DEADLINES_MS, GRACE_MS } from '../../control-plane/domain/deadlines.js';
import type { InstanceStatus } from '../../control-plane/domain/instances/instance-state.js';
import { paidMs } from '../../control-plane/domain/money/paid-time.js';

describe('A charge', () => {
  it.each([
    [1_000, 0, 0],
    [1_000, HOUR_MS, 1_000],
    [1_000, HOUR_MS / 1_000 - 1, 0],
    [1_000, HOUR_MS / 1_000, 1],
    [7, 3 * HOUR_MS - 1, 20],
    [0, HOUR_MS, 0],
  ])('at %i an hour for %i ms is %i', (rate, ms, expected) => {
    expect(charge(rate, ms)).toBe(expected);
  });

  it('is exact where the product is beyond what a double holds', () => {
    // As doubles, the product would be rounded up to the next whole micro-dollar.
    expect(charge(997_203_600_001, HOUR_MS - 1)).toBe(997_203_322_999);
    expect(charge(997_203_600_001, 11 * HOUR_MS - 1)).toBe(10 * 997_203_600_001 + 997_203_322_999);
  });
});

describe('A balance', () => {
  it.each([
    [1_000, 2_000, HOUR_MS / 2],
    [1_000, 3_000, HOUR_MS / 3],
    [1, 7, 514_285],
    [0, 2_000, 0],
    [-1, 2_000, 0],
    [0, 0, 0],
    [1, 0, 30 * 24 * HOUR_MS],
    [1_000_000_000, 1, 30 * 24 * HOUR_MS],
  ])('of %i lasts, at %i an hour, for %i ms', (balance, burn, expected) => {
    expect(paidMs(balance, burn)).toBe(expected);
  });
});

describe('The time that is charged', () => {
  const now = 1_000;
  const after = (before: InstanceStatus, to: InstanceStatus, from: number | null, end: number | null) => {
    const { charge_from, charge_to } = windowAfter({ charge_from: from, charge_to: end }, before, to, now);
    return [charge_from, charge_to];
  };

  it.each([
    ['creating', 'running'],
    ['starting', 'running'],
    ['stopped', 'starting'],
  ] as const)('goes on from %s to %s', (before, to) => {
    expect(after(before, to, 10, null)).toEqual([10, null]);
  });

  it.each([
    ['creating', 'error'],
    ['creating', 'destroying'],
    ['starting', 'stopped'],
    ['starting', 'destroying'],
    ['running', 'stopping'],
    ['running', 'error'],
    ['running', 'destroying'],
  ] as const)('ends from %s to %s, where it had not ended', (before, to) => {
    expect(after(before, to, 10, null)).toEqual([10, now]);
    expect(after(before, to, 10, 500)).toEqual([10, 500]);
  });

  it.each([
    ['stopping', 'stopped'],
    ['stopping', 'destroying'],
    ['error', 'destroying'],
    ['destroying', 'destroyed'],
  ] as const)('stays as it was from %s to %s', (before, to) => {
    expect(after(before, to, 10, 500)).toEqual([10, 500]);
    expect(after(before, to, null, null)).toEqual([null, null]);
  });

  it('begins anew where what was to stop, or what nobody had sent, runs', () => {
    expect(after('stopping', 'running', 10, 500)).toEqual([now, null]);
    expect(after('creating', 'running', null, null)).toEqual([now, null]);
  });
});

describe('An allowance', () => {
  it('is so much at once, and so much a second after that', () => {
    const allowance = new TokenBucket(10, 2);
    expect([allowance.take(4, 100), allowance.take(6, 100), allowance.take(1, 100)]).toEqual([true, true, false]);
    expect([allowance.take(1, 599), allowance.take(1, 600), allowance.take(1, 600)]).toEqual([false, true, false]);
    expect([allowance.take(11, 100_000), allowance.take(10, 100_000), allowance.take(1, 100_000)]).toEqual([
      false,
      true,
      false,
    ]);
  });

  it('loses nothing by a time that goes back, and takes back no more than it gives at once', () => {
    const allowance = new TokenBucket(10, 2);
    allowance.take(10, 5_000);
    expect(allowance.take(1, 0)).toBe(false);
    allowance.give(3);
    expect([allowance.take(4, 0), allowance.take(3, 0)]).toEqual([false, true]);
    allowance.give(100);
    expect([allowance.take(11, 0), allowance.take(10, 0)]).toEqual([false, true]);
  });
});

it('a host that counts far beyond what was sent is not believed', () => {
  expect(isPlausible({ sequence: 7 }, 1_000_007)).toBe(true);
  expect(isPlausible({ sequence: 7 }, 1_000_008)).toBe(false);
  expect(isPlausible({ sequence: 7 }, 1)).toBe(true);
});

it('what is promised to renters and hosts has these times', () => {
  const minutes = Object.entries(DEADLINES_MS).map(([status, ms]) => [status, ms / 60_000]);
  expect(Object.fromEntries(minutes)).toEqual({ creating: 30, starting: 10, stopping: 30 });
  expect(GRACE_MS).toBe(120_000);
  expect(AUTO_DESTROY).toEqual({ afterMs: 24 * HOUR_MS, atMicro: -5_000_000 });
});
