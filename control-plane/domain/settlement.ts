import { DAY_MS, MINUTE_MS } from '../../shared/time.js';
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
  intervals: readonly Interval[];
}

/** A change of a balance that is not a charge. */
export interface Entry {
  at: number;
  amountMicro: number;
}

export interface Account {
  balanceMicro: number;
  /** Oldest first. Entries from before all time that is still to be settled can be left out. */
  entries: readonly Entry[];
  meters: readonly Metered[];
}

/** The part of a charge for use on one UTC day. */
export interface DayCharge {
  /** In days since 1970. */
  day: number;
  micro: number;
}

/** What one settlement charges and writes off, and what follows for the organization. */
export interface Settlement {
  bookings: { instanceId: string; meter: Meter; ms: number; chargedMicro: number; days: DayCharge[] }[];
  /** `absorbedMicro` is the part of the cost of the millisecond in which the balance ran out that the balance did not cover. */
  intervals: { id: number; settledTo: number; absorbedMs: number; absorbedMicro: number }[];
  /** When the balance ran out: GPU time ends there. Absent while the balance lasts, and until it is certain. */
  exhaustedAt?: number;
  /** When to settle again; null while nothing is metered. */
  nextAt: number | null;
}

/** The longest time between two settlements, also while the balance lasts for longer. */
const PERIOD_MS = MINUTE_MS;
/** After so long a settlement that waits for hosts is tried again. */
const AWAITED_AGAIN_MS = 5_000;
/** How far {@link lastsUntil} looks ahead. */
const LONGEST_MS = 100 * 365 * DAY_MS;

interface Span {
  from: number;
  to: number;
}

/** The part of an instance's GPU cost, in the millisecond that ends at `at`, that the balance did not cover. */
interface Uncovered {
  instanceId: string;
  at: number;
  micro: number;
}

/**
 * Settles an organization up to `now`, in the order of time. It charges all attested time up to the end of the millisecond in which the
 * balance ran out. GPU time after that is written off; disk is charged into debt.
 *
 * In the millisecond in which the balance runs out, disks are charged first. The rest is charged for the GPUs of one instance after the
 * other, in the order of their ids.
 *
 * If the balance covers everything that could be charged, all attested time is charged at once. If it might not, only the time up to
 * which every recently seen host has reported is charged, and later time waits for the missing reports.
 */
export function settle(account: Account, now: number): Settlement {
  const { meters } = account;
  const { empty, uncovered } = findEmpty(account, now);
  const first = empty[0]?.from ?? Infinity;
  const frontier = first > now ? now : frontierOf(meters, now);
  const current = empty.findLast(({ from, to }) => from <= now && to > now);
  const awaited = meters.some(({ intervals }) => intervals.some((one) => isAwaited(one, now)));
  const isCertain = current !== undefined && (!awaited || current.from <= frontier);
  const next = empty.find(({ from }) => from > now)?.from ?? now + PERIOD_MS;
  return {
    ...book(meters, first > now ? [] : empty, uncovered, frontier),
    ...(isCertain ? { exhaustedAt: current.from } : {}),
    nextAt: meters.length === 0 ? null : current && !isCertain ? now + AWAITED_AGAIN_MS : next,
  };
}

/**
 * Returns when the balance is used up if everything that is metered goes on, in milliseconds since 1970; `now` if it is used up already.
 * Null while nothing is charged, and if the balance lasts beyond `horizon`, which is a hundred years ahead unless it is given.
 */
export function lastsUntil({ balanceMicro, meters }: Account, now: number, horizon = now + LONGEST_MS): number | null {
  if (dueAt(meters, [], horizon) === dueAt(meters, [], now)) return null;
  return balanceMicro <= 0 ? now : (firstUnpaid(meters, [], balanceMicro, now, horizon) ?? null);
}

/** Returns the time up to which every interval that can still be reported on is attested. */
function frontierOf(meters: readonly Metered[], now: number): number {
  const open = meters.flatMap(({ intervals }) => intervals.filter((one) => isOutstanding(one, now)));
  return open.reduce((least, { attestedTo }) => Math.min(least, attestedTo), now);
}

function isOutstanding({ attestedTo, closedAt, beyond }: Interval, now: number): boolean {
  return beyond !== 'silent' && attestedTo < Math.min(closedAt ?? now, now);
}

function isAwaited(interval: Interval, now: number): boolean {
  return interval.beyond === 'awaited' && isOutstanding(interval, now);
}

/** The time and the cost that the balance did not cover. */
interface Exhaustion {
  empty: readonly Span[];
  uncovered: readonly Uncovered[];
}

/** For disks, which are charged into debt: nothing of them is written off. */
const NEVER: Exhaustion = { empty: [], uncovered: [] };

function absorbedIn(
  { from, to }: Span,
  { empty, uncovered }: Exhaustion,
): { absorbedMs: number; absorbedMicro: number } {
  const micros = uncovered.filter(({ at }) => at > from && at <= to).map(({ micro }) => micro);
  return { absorbedMs: overlap(empty, from, to), absorbedMicro: sum(micros) };
}

/** Cuts a span at every UTC midnight. */
function byDay({ from, to }: Span): Span[] {
  const midnight = (Math.floor(from / DAY_MS) + 1) * DAY_MS;
  return midnight >= to ? [{ from, to }] : [{ from, to: midnight }, ...byDay({ from: midnight, to })];
}

/** Returns what `ms` more cost, in micro-dollars, after the time that was charged so far. */
function costOf({ ratePerHourMicro, settledMs }: Metered, ms: number): number {
  return charge(ratePerHourMicro, settledMs + ms) - charge(ratePerHourMicro, settledMs);
}

/** Returns the charges for the time up to `frontier`, and the part of that time that is written off. */
function book(
  meters: readonly Metered[],
  empty: readonly Span[],
  uncovered: readonly Uncovered[],
  frontier: number,
): Pick<Settlement, 'bookings' | 'intervals'> {
  const bookings: Settlement['bookings'] = [];
  const intervals: Settlement['intervals'] = [];
  for (const metered of meters) {
    const isGpu = metered.meter === 'gpu';
    const its = isGpu ? { empty, uncovered: uncovered.filter((one) => one.instanceId === metered.instanceId) } : NEVER;
    const days = new Map<number, number>();
    let ms = 0;
    for (const { id, settledTo, attestedTo } of metered.intervals) {
      const to = Math.min(attestedTo, frontier);
      if (to <= settledTo) continue;
      const parts = byDay({ from: settledTo, to }).map((span) => ({ ...span, ...absorbedIn(span, its) }));
      for (const { from, to: end, absorbedMs, absorbedMicro } of parts) {
        const before = ms;
        ms += end - from - absorbedMs;
        const micro = costOf(metered, ms) - costOf(metered, before) - absorbedMicro;
        const day = Math.floor(from / DAY_MS);
        days.set(day, (days.get(day) ?? 0) + micro);
      }
      const [absorbedMs, absorbedMicro] = [
        sum(parts.map((one) => one.absorbedMs)),
        sum(parts.map((one) => one.absorbedMicro)),
      ];
      intervals.push({ id, settledTo: to, absorbedMs, absorbedMicro });
    }
    const chargedMicro = sum([...days.values()]);
    const { instanceId, meter } = metered;
    if (ms > 0)
      bookings.push({ instanceId, meter, ms, chargedMicro, days: [...days].map(([day, micro]) => ({ day, micro })) });
  }
  return { bookings, intervals };
}

/**
 * Returns the spans without any balance until the next settlement: each begins in the millisecond in which the cost reaches the balance,
 * and ends at the next entry that raises the balance. Returns also the cost in each first millisecond that the balance did not cover.
 */
function findEmpty({ balanceMicro, entries, meters }: Account, now: number): { empty: Span[]; uncovered: Uncovered[] } {
  const horizon = now + PERIOD_MS;
  const pending = meters.flatMap(({ intervals }) => intervals.map(({ settledTo }) => settledTo));
  const start = pending.reduce((least, at) => Math.min(least, at), now);
  const later = entries.filter(({ at }) => at > start && at <= horizon);
  const empty: Span[] = [];
  const uncovered: Uncovered[] = [];
  let left = balanceMicro - later.reduce((sum, { amountMicro }) => sum + amountMicro, 0);
  let from = start;
  for (const { at, amountMicro } of [...later, { at: horizon, amountMicro: 0 }]) {
    const since = firstUnpaid(meters, empty, left, from, at);
    if (since !== undefined) {
      const its = since > from ? uncoveredAt(meters, empty, left, since) : [];
      uncovered.push(...its);
      left += sum(its.map(({ micro }) => micro));
      extend(empty, { from: since, to: at });
    }
    left += amountMicro;
    from = at;
  }
  return { empty: closeEnd(empty, horizon), uncovered };
}

/** Returns the part of the GPU cost that `left` does not cover in the millisecond that ends at `at`, in which it runs out. */
function uncoveredAt(meters: readonly Metered[], empty: readonly Span[], left: number, at: number): Uncovered[] {
  const costs = meters
    .filter(({ meter }) => meter === 'gpu')
    .map((one) => ({ instanceId: one.instanceId, micro: dueOf(one, empty, at) - dueOf(one, empty, at - 1) }))
    .sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1));
  const missing = Math.max(dueAt(meters, empty, at) - left, 0);
  let covered = Math.max(sum(costs.map(({ micro }) => micro)) - missing, 0);
  return costs.flatMap(({ instanceId, micro }) => {
    const paid = Math.min(micro, covered);
    covered -= paid;
    return micro > paid ? [{ instanceId, at, micro: micro - paid }] : [];
  });
}

/** Makes a span that reaches the horizon open-ended. */
function closeEnd(empty: readonly Span[], horizon: number): Span[] {
  return empty.map(({ from, to }) => ({ from, to: to === horizon ? Infinity : to }));
}

function extend(spans: Span[], next: Span): void {
  const last = spans.at(-1);
  if (last?.to === next.from) last.to = next.to;
  else spans.push(next);
}

/** Returns the first millisecond of [from, to] at which `left` does not cover the cost; undefined if it covers all of it. */
function firstUnpaid(
  meters: readonly Metered[],
  empty: readonly Span[],
  left: number,
  from: number,
  to: number,
): number | undefined {
  const costs = meters.some(({ meter, ratePerHourMicro }) => meter === 'gpu' && ratePerHourMicro > 0);
  // GPUs that cost nothing go on at a balance of zero, but not in debt.
  const isUnpaid = (at: number) => {
    const due = dueAt(meters, empty, at);
    return due >= left && (due > 0 || left < 0 || costs);
  };
  if (isUnpaid(from)) return from;
  if (!isUnpaid(to)) return undefined;
  let [paid, unpaid] = [from, to];
  while (unpaid - paid > 1) {
    const middle = Math.floor((paid + unpaid) / 2);
    if (isUnpaid(middle)) unpaid = middle;
    else paid = middle;
  }
  return unpaid;
}

/** Returns the cost up to `at` of all time that is not settled, in micro-dollars. */
function dueAt(meters: readonly Metered[], empty: readonly Span[], at: number): number {
  return sum(meters.map((one) => dueOf(one, empty, at)));
}

function dueOf(metered: Metered, empty: readonly Span[], at: number): number {
  let ms = 0;
  for (const interval of metered.intervals) {
    const to = Math.max(reach(interval, at), interval.settledTo);
    ms += to - interval.settledTo - (metered.meter === 'gpu' ? overlap(empty, interval.settledTo, to) : 0);
  }
  return costOf(metered, ms);
}

/** Returns up to when an interval is assumed to have been used, looking at it at `at`. */
function reach({ attestedTo, closedAt, beyond }: Interval, at: number): number {
  return Math.min(at, closedAt ?? Infinity, beyond === 'silent' ? attestedTo : Infinity);
}

function overlap(spans: readonly Span[], from: number, to: number): number {
  return spans.reduce((sum, span) => sum + Math.max(Math.min(span.to, to) - Math.max(span.from, from), 0), 0);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
