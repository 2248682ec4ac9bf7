import { DAY_MS, MINUTE_MS } from '../../shared/time.js';
import { charge } from './charge.js';
import type { Meter } from './money.js';

/** A time over which an instance is metered. All times are milliseconds since 1970. */
export interface Interval {
  id: number;
  /** Charged, or absorbed, up to here. */
  settledTo: number;
  /** Up to here it is certain that the time was had: GPU time by the host's word. */
  attestedTo: number;
  /** Absent while it goes on. */
  closedAt: number | null;
  /**
   * What lies after `attestedTo`. `runs`: the host has only just spoken, and it is taken to go on; `awaited`: the host has been
   * silent, and is about to tell; `silent`: nobody knows, and nothing is taken for granted.
   */
  beyond: 'runs' | 'awaited' | 'silent';
}

/** One meter of one instance: what is charged is the floor of all its time together, so that no fraction is lost or had twice. */
export interface Metered {
  instanceId: string;
  meter: Meter;
  ratePerHourMicro: number;
  /** What was charged for so far, in milliseconds. */
  settledMs: number;
  intervals: readonly Interval[];
}

/** What has moved a balance, other than charges. */
export interface Entry {
  at: number;
  amountMicro: number;
}

export interface Account {
  balanceMicro: number;
  /** Oldest first; those before any time that is to be settled need not be there. */
  entries: readonly Entry[];
  meters: readonly Metered[];
}

/** What of a charge is for one UTC day, by when it was used. */
export interface DayCharge {
  /** Since 1970. */
  day: number;
  micro: number;
}

export interface Settlement {
  bookings: { instanceId: string; meter: Meter; ms: number; chargedMicro: number; days: DayCharge[] }[];
  /** `absorbedMicro` is what of the millisecond in which the balance ran out it did not cover. */
  intervals: { id: number; settledTo: number; absorbedMs: number; absorbedMicro: number }[];
  /** Since when nothing is left: GPU time ends there. Absent while the balance lasts, or as long as that cannot be known. */
  exhaustedAt?: number;
  /** When to settle again; null while nothing is metered. */
  nextAt: number | null;
}

/** A balance that lasts for longer is settled again after this time anyway. */
const PERIOD_MS = MINUTE_MS;
/** Hosts that are awaited speak soon. */
const AWAITED_AGAIN_MS = 5_000;
/** For which {@link lastsUntil} looks ahead. */
const LONGEST_MS = 100 * 365 * DAY_MS;

interface Span {
  from: number;
  to: number;
}

/** What an instance's GPUs cost in the millisecond that ends `at`, and the balance did not cover. */
interface Uncovered {
  instanceId: string;
  at: number;
  micro: number;
}

/**
 * Settles an organization up to `now`: what is charged, in the order of time, is what was certainly had while the balance
 * lasted, to the end of the millisecond in which it ran out. GPU time for which nothing was left is absorbed; disk is charged
 * into debt. In the millisecond in which the balance runs out, disks are charged first; what they leave is charged for the GPUs
 * of one instance after the other, in the order of their ids. Where the balance may have run out, what cannot be put in order yet waits until its hosts have spoken; where it
 * lasts in any case, nothing waits.
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
 * When the balance is used up if all that is metered goes on as it does, in milliseconds since 1970: `now` where it is already. Null
 * while nothing is charged, and where it lasts for more than a hundred years.
 */
export function lastsUntil({ balanceMicro, meters }: Account, now: number): number | null {
  const horizon = now + LONGEST_MS;
  if (dueAt(meters, [], horizon) === dueAt(meters, [], now)) return null;
  return balanceMicro <= 0 ? now : (firstUnpaid(meters, [], balanceMicro, now, horizon) ?? null);
}

/** How far everything is certain. */
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

/** For which of a meter's time nothing was left. */
interface Exhaustion {
  empty: readonly Span[];
  uncovered: readonly Uncovered[];
}

/** Disks are charged into debt. */
const NEVER: Exhaustion = { empty: [], uncovered: [] };

function absorbedIn(
  { from, to }: Span,
  { empty, uncovered }: Exhaustion,
): { absorbedMs: number; absorbedMicro: number } {
  const micros = uncovered.filter(({ at }) => at > from && at <= to).map(({ micro }) => micro);
  return { absorbedMs: overlap(empty, from, to), absorbedMicro: sum(micros) };
}

/** Cuts a time at every UTC midnight. */
function byDay({ from, to }: Span): Span[] {
  const midnight = (Math.floor(from / DAY_MS) + 1) * DAY_MS;
  return midnight >= to ? [{ from, to }] : [{ from, to: midnight }, ...byDay({ from: midnight, to })];
}

/** What so much time costs beyond what was charged so far. */
function costOf({ ratePerHourMicro, settledMs }: Metered, ms: number): number {
  return charge(ratePerHourMicro, settledMs + ms) - charge(ratePerHourMicro, settledMs);
}

/** What is charged for the time up to `frontier`, and what of it is absorbed. */
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
 * When, until the next settlement, nothing is left: from the millisecond in which what has come due reaches the balance until the next
 * entry that lifts it; and what the balance did not cover of those milliseconds.
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

/** What `left` does not cover of GPU time in the millisecond that ends `at`, in which it runs out. */
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

/** What lasts to the horizon has no end that is known. */
function closeEnd(empty: readonly Span[], horizon: number): Span[] {
  return empty.map(({ from, to }) => ({ from, to: to === horizon ? Infinity : to }));
}

function extend(spans: Span[], next: Span): void {
  const last = spans.at(-1);
  if (last?.to === next.from) last.to = next.to;
  else spans.push(next);
}

/** The first millisecond of [from, to] at which what is due is not covered any more. */
function firstUnpaid(
  meters: readonly Metered[],
  empty: readonly Span[],
  left: number,
  from: number,
  to: number,
): number | undefined {
  const costs = meters.some(({ meter, ratePerHourMicro }) => meter === 'gpu' && ratePerHourMicro > 0);
  // What costs nothing goes on with nothing, but not in debt.
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

/** What would have come due at `at` of what is not settled, in micro-dollars. */
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

/** How far an interval is taken to have been had at `at`. */
function reach({ attestedTo, closedAt, beyond }: Interval, at: number): number {
  return Math.min(at, closedAt ?? Infinity, beyond === 'silent' ? attestedTo : Infinity);
}

function overlap(spans: readonly Span[], from: number, to: number): number {
  return spans.reduce((sum, span) => sum + Math.max(Math.min(span.to, to) - Math.max(span.from, from), 0), 0);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
