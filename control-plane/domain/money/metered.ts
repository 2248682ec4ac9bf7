import { charge } from './charge.js';
import type { Meter } from './money.js';

/** One stretch of time over which an instance is metered. All times are milliseconds since 1970. */
export interface Interval {
  id: number;
  /** Up to here the time is charged or written off. */
  settledTo: number;
  /** Up to here it is certain that the time was used. GPU time is certain when its host has reported it. */
  attestedTo: number;
  /** Null while the interval is open. */
  closedAt: number | null;
  /**
   * How the time after `attestedTo` is treated. `runs`: the host reported a moment ago, so the run is assumed to go on. `awaited`: the
   * host has been silent for a short while, and its next report will tell. `silent`: unknown, so nothing is assumed.
   */
  beyond: 'runs' | 'awaited' | 'silent';
  /** The API key for whose caps its time counts; null: none. */
  apiKeyId: string | null;
}

/**
 * One meter of one instance. The charge is the floor of the cost of all its time together, so that no fraction of a micro-dollar is lost
 * or charged twice.
 */
export interface Metered {
  instanceId: string;
  meter: Meter;
  ratePerHourMicro: number;
  /** The time that was charged so far, in milliseconds. */
  settledMs: number;
  /** In the order of time. */
  intervals: readonly Interval[];
  /** Of the cost, only that of the intervals of this API key is looked at. Absent: all of it. */
  onlyOfKey?: string;
}

export interface Span {
  from: number;
  to: number;
}

/** The part of an instance's GPU cost, in the millisecond that ends at `at`, that nothing was left for. */
export interface Uncovered {
  instanceId: string;
  at: number;
  micro: number;
}

/** The GPU time that is written off instead of charged. */
export interface Unpaid {
  /** The spans without any balance. */
  empty: readonly Span[];
  /** The spans in which an interval is not charged, by its id, because a limit is used up: in the order of time, and apart. */
  limited: ReadonlyMap<number, readonly Span[]>;
  uncovered: readonly Uncovered[];
}

/** For disks, which are charged into debt and beyond limits: nothing of them is written off. */
export const ALL_PAID: Unpaid = { empty: [], limited: new Map(), uncovered: [] };

/** Returns how much of an interval between two times is written off, in milliseconds. */
export function unpaidMs({ id }: Interval, { empty, limited }: Unpaid, from: number, to: number): number {
  const its = limited.get(id);
  return overlap(its ? joined([...empty, ...its]) : empty, from, to);
}

/** Returns spans in the order of time, with those that overlap or touch as one. */
export function joined(spans: readonly Span[]): Span[] {
  const all: Span[] = [];
  for (const { from, to } of [...spans].sort((a, b) => a.from - b.from)) {
    const last = all.at(-1);
    if (last && from <= last.to) last.to = Math.max(last.to, to);
    else all.push({ from, to });
  }
  return all;
}

/** Returns what `ms` more cost, in micro-dollars, after the time that was charged so far. */
export function costOf({ ratePerHourMicro, settledMs }: Metered, ms: number): number {
  return charge(ratePerHourMicro, settledMs + ms) - charge(ratePerHourMicro, settledMs);
}

/** Returns the cost up to `at` of all time that is not settled, in micro-dollars. */
export function dueAt(meters: readonly Metered[], unpaid: Unpaid, at: number): number {
  return sum(meters.map((one) => dueOf(one, unpaid, at)));
}

/** Returns the cost up to `at` of one meter's time that is not settled, in micro-dollars. */
export function dueOf(metered: Metered, all: Unpaid, at: number): number {
  const unpaid = metered.meter === 'gpu' ? all : ALL_PAID;
  let [ms, cost] = [0, 0];
  for (const interval of metered.intervals) {
    const to = Math.max(reach(interval, at), interval.settledTo);
    const before = ms;
    ms += to - interval.settledTo - unpaidMs(interval, unpaid, interval.settledTo, to);
    if (isCounted(metered, interval)) cost += costOf(metered, ms) - costOf(metered, before);
  }
  const { instanceId } = metered;
  const uncovered = unpaid.uncovered.filter((one) => one.instanceId === instanceId && one.at <= at);
  return cost - sum(uncovered.filter((one) => isCountedAt(metered, one.at)).map(({ micro }) => micro));
}

/** Tells whether the time of an interval is looked at. */
export function isCounted({ onlyOfKey }: Metered, { apiKeyId }: Interval): boolean {
  return onlyOfKey === undefined || apiKeyId === onlyOfKey;
}

/** Tells whether the millisecond that ends at `at` is looked at: it is one of the last interval that has begun by then. */
function isCountedAt(metered: Metered, at: number): boolean {
  const interval = metered.intervals.findLast(({ settledTo }) => settledTo < at);
  return metered.onlyOfKey === undefined || (interval !== undefined && isCounted(metered, interval));
}

/**
 * Returns the part of the GPU cost, in the millisecond that ends at `at`, for which nothing is left: `missing` micro-dollars in all. What
 * is left pays for the GPUs of one instance after the other, in the order of their ids.
 */
export function uncoveredAt(meters: readonly Metered[], unpaid: Unpaid, at: number, missing: number): Uncovered[] {
  const costs = meters
    .filter(({ meter }) => meter === 'gpu')
    .map((one) => ({ instanceId: one.instanceId, micro: dueOf(one, unpaid, at) - dueOf(one, unpaid, at - 1) }))
    .sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1));
  let covered = Math.max(sum(costs.map(({ micro }) => micro)) - Math.max(missing, 0), 0);
  return costs.flatMap(({ instanceId, micro }) => {
    const paid = Math.min(micro, covered);
    covered -= paid;
    return micro > paid ? [{ instanceId, at, micro: micro - paid }] : [];
  });
}

/** Returns the first millisecond in (from, to] at which `holds` is true; it is false at `from`, true at `to`, and never false again. */
export function firstAt(from: number, to: number, holds: (at: number) => boolean): number {
  let [before, after] = [from, to];
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (holds(middle)) after = middle;
    else before = middle;
  }
  return after;
}

/** Returns up to when an interval is assumed to have been used, looking at it at `at`. */
export function reach({ attestedTo, closedAt, beyond }: Interval, at: number): number {
  return Math.min(at, closedAt ?? Infinity, beyond === 'silent' ? attestedTo : Infinity);
}

/** Returns the time up to which every interval that can still be reported on is attested. */
export function frontierOf(meters: readonly Metered[], now: number): number {
  const open = meters.flatMap(({ intervals }) => intervals.filter((one) => isOutstanding(one, now)));
  return open.reduce((least, { attestedTo }) => Math.min(least, attestedTo), now);
}

/** Tells whether the next report of a host that is silent for a short while can change what these meters cost. */
export function areAwaited(meters: readonly Metered[], now: number): boolean {
  return meters.some(({ intervals }) => intervals.some((one) => one.beyond === 'awaited' && isOutstanding(one, now)));
}

function isOutstanding({ attestedTo, closedAt, beyond }: Interval, now: number): boolean {
  return beyond !== 'silent' && attestedTo < Math.min(closedAt ?? now, now);
}

function overlap(spans: readonly Span[], from: number, to: number): number {
  return spans.reduce((sum, span) => sum + Math.max(Math.min(span.to, to) - Math.max(span.from, from), 0), 0);
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
