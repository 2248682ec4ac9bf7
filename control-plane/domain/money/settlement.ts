import { DAY_MS, MINUTE_MS } from '../../../shared/time.js';
import {
  ALL_PAID,
  areAwaited,
  costOf,
  dueAt,
  firstAt,
  frontierOf,
  isCounted,
  joined,
  sum,
  uncoveredAt,
  unpaidMs,
  type Metered,
  type Span,
  type Uncovered,
  type Unpaid,
} from './metered.js';
import type { Meter } from './money.js';
import {
  firstReached,
  intervalsOf,
  metersOf,
  spanOf,
  uncoveredBy,
  type LimitName,
  type Reached,
  type SpendLimit,
} from './spend-limit.js';

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
  limits: readonly SpendLimit[];
}

/** The part of a charge for use on one UTC day that counts for the caps of one API key; null: of none. */
export interface DayCharge {
  /** In days since 1970. */
  day: number;
  micro: number;
  apiKeyId: string | null;
}

/** The end of an instance's GPU time: a limit is used up. */
export interface LimitStop {
  instanceId: string;
  limit: LimitName;
  at: number;
}

/** What one settlement charges and writes off, and what follows for the organization. */
export interface Settlement {
  bookings: { instanceId: string; meter: Meter; ms: number; chargedMicro: number; days: DayCharge[] }[];
  /** `absorbedMicro` is the part of the cost of the millisecond in which the balance ran out that the balance did not cover. */
  intervals: { id: number; settledTo: number; absorbedMs: number; absorbedMicro: number }[];
  /** When the balance ran out: GPU time ends there. Absent while the balance lasts, and until it is certain. */
  exhaustedAt?: number;
  /** What is charged for earlier limits, by their rows: for time before they were changed. */
  earlier: { rowId: number; chargedMicro: number }[];
  /** The running instances that a limit stops, each once; those of which it is not yet certain are left out. */
  stops: LimitStop[];
  /** When to settle again; null while nothing is metered. */
  nextAt: number | null;
}

/** The longest time between two settlements, also while the balance lasts for longer. */
const PERIOD_MS = MINUTE_MS;
/** After so long a settlement that waits for hosts is tried again. */
const AWAITED_AGAIN_MS = 5_000;
/** How far {@link lastsUntil} looks ahead. */
const LONGEST_MS = 100 * 365 * DAY_MS;

/**
 * Settles an organization up to `now`, in the order of time. It charges all attested time up to the end of the millisecond in which the
 * balance or a limit ran out. GPU time after that is written off; disk is charged into debt and beyond limits.
 *
 * In the millisecond in which the balance or a limit runs out, disks are charged first. The rest is charged for the GPUs of one instance
 * after the other, in the order of their ids.
 *
 * If balance and limits cover everything that could be charged, all attested time is charged at once. If one might not, only the time up
 * to which every recently seen host of its instances has reported is charged, and later time waits for the missing reports.
 */
export function settle(account: Account, now: number): Settlement {
  const { meters } = account;
  const { unpaid, reached } = findUnpaid(account, now);
  const { empty } = unpaid;
  const first = empty[0]?.from ?? Infinity;
  const frontier = first > now ? now : frontierOf(meters, now);
  const current = empty.findLast(({ from, to }) => from <= now && to > now);
  const isCertain = current !== undefined && (!areAwaited(meters, now) || current.from <= frontier);
  const past = reached.filter(({ at }) => at <= now);
  const certain = past.filter((one) => isCertainOf(one, meters, now));
  const next = Math.min(
    ...[...empty.map(({ from }) => from), ...reached.map(({ at }) => at)].filter((at) => at > now),
    now + PERIOD_MS,
  );
  const waits = (current !== undefined && !isCertain) || certain.length < past.length;
  const frontiers = (metered: Metered) =>
    Math.min(frontier, ...past.map((one) => limitFrontier(one, metered, meters, now)));
  const known = first > now ? { ...unpaid, empty: [] } : unpaid;
  const rows = account.limits.flatMap((limit) =>
    limit.earlier?.rowId == null ? [] : { limit, rowId: limit.earlier.rowId },
  );
  return {
    ...book(meters, known, frontiers),
    ...(isCertain ? { exhaustedAt: current.from } : {}),
    earlier: rows.map(({ limit, rowId }) => ({ rowId, chargedMicro: chargedFor(limit, meters, known, frontiers) })),
    stops: stopsBy(certain, meters),
    nextAt: meters.length === 0 ? null : waits ? now + AWAITED_AGAIN_MS : next,
  };
}

/** Tells whether no report that is still to come can move the time at which a limit was used up. */
function isCertainOf({ limit, at }: Reached, meters: readonly Metered[], now: number): boolean {
  if (limit.leftMicro === null) return true;
  const its = metersOf(limit, meters);
  return !areAwaited(its, now) || at <= frontierOf(its, now);
}

/** Returns up to when a meter can be charged, as far as a limit is concerned that is used up. */
function limitFrontier({ limit }: Reached, metered: Metered, meters: readonly Metered[], now: number): number {
  const its = metersOf(limit, meters);
  const isIts = its.some(({ instanceId, meter }) => instanceId === metered.instanceId && meter === metered.meter);
  return limit.leftMicro === null || !isIts ? now : frontierOf(its, now);
}

/**
 * Returns the running instances whose limits are used up, each once, also those of which {@link settle} is not certain yet and waits for a
 * host.
 */
export function stopsDue(account: Account, now: number): LimitStop[] {
  const { reached } = findUnpaid(account, now);
  return stopsBy(
    reached.filter(({ at }) => at <= now),
    account.meters,
  );
}

function stopsBy(reached: readonly Reached[], meters: readonly Metered[]): LimitStop[] {
  const stops = new Map<string, LimitStop>();
  for (const { limit, at } of reached.filter(({ limit: { earlier } }) => earlier === null)) {
    for (const { instanceId, interval } of intervalsOf(limit, meters))
      if (interval.closedAt === null && !stops.has(instanceId))
        stops.set(instanceId, { instanceId, limit: limit.name, at });
  }
  return [...stops.values()];
}

/**
 * Returns when the balance is used up if everything that is metered goes on, in milliseconds since 1970; `now` if it is used up already.
 * Null while nothing is charged, and if the balance lasts beyond `horizon`, which is a hundred years ahead unless it is given. Limits are
 * left out.
 */
export function lastsUntil(
  { balanceMicro, meters }: Pick<Account, 'balanceMicro' | 'meters'>,
  now: number,
  horizon = now + LONGEST_MS,
): number | null {
  if (dueAt(meters, ALL_PAID, horizon) === dueAt(meters, ALL_PAID, now)) return null;
  return balanceMicro <= 0 ? now : (firstUnpaid(meters, ALL_PAID, balanceMicro, now, horizon) ?? null);
}

function absorbedIn({ from, to }: Span, interval: Metered['intervals'][number], unpaid: Unpaid) {
  const micros = unpaid.uncovered.filter(({ at }) => at > from && at <= to).map(({ micro }) => micro);
  return { absorbedMs: unpaidMs(interval, unpaid, from, to), absorbedMicro: sum(micros) };
}

/** Cuts a span at every UTC midnight. */
function byDay({ from, to }: Span): Span[] {
  const midnight = (Math.floor(from / DAY_MS) + 1) * DAY_MS;
  return midnight >= to ? [{ from, to }] : [{ from, to: midnight }, ...byDay({ from: midnight, to })];
}

/** Returns the charges for the time of each meter up to its frontier, and the part of that time that is written off. */
function book(
  meters: readonly Metered[],
  unpaid: Unpaid,
  frontierOfMeter: (metered: Metered) => number,
): Pick<Settlement, 'bookings' | 'intervals'> {
  const bookings: Settlement['bookings'] = [];
  const intervals: Settlement['intervals'] = [];
  for (const metered of meters) {
    const { instanceId, meter } = metered;
    const own = { ...unpaid, uncovered: unpaid.uncovered.filter((one) => one.instanceId === instanceId) };
    const its = meter === 'gpu' ? own : ALL_PAID;
    const frontier = frontierOfMeter(metered);
    const days: DayCharge[] = [];
    let ms = 0;
    for (const interval of metered.intervals) {
      const { id, settledTo, attestedTo, apiKeyId } = interval;
      const to = Math.min(attestedTo, frontier);
      if (to <= settledTo) continue;
      const parts = byDay({ from: settledTo, to }).map((span) => ({ ...span, ...absorbedIn(span, interval, its) }));
      for (const { from, to: end, absorbedMs, absorbedMicro } of parts) {
        const before = ms;
        ms += end - from - absorbedMs;
        const micro = costOf(metered, ms) - costOf(metered, before) - absorbedMicro;
        if (isCounted(metered, interval)) addTo(days, { day: Math.floor(from / DAY_MS), micro, apiKeyId });
      }
      const [absorbedMs, absorbedMicro] = [
        sum(parts.map((one) => one.absorbedMs)),
        sum(parts.map((one) => one.absorbedMicro)),
      ];
      intervals.push({ id, settledTo: to, absorbedMs, absorbedMicro });
    }
    if (ms > 0) bookings.push({ instanceId, meter, ms, chargedMicro: sum(days.map(({ micro }) => micro)), days });
  }
  return { bookings, intervals };
}

/** Adds a charge to that of the same day and API key. */
function addTo(days: DayCharge[], { day, micro, apiKeyId }: DayCharge): void {
  const same = days.findLast((one) => one.day === day && one.apiKeyId === apiKeyId);
  if (same) same.micro += micro;
  else days.push({ day, micro, apiKeyId });
}

/** Returns what is charged now for the time that counts for a limit, in micro-dollars. */
function chargedFor(
  limit: SpendLimit,
  meters: readonly Metered[],
  unpaid: Unpaid,
  frontierOfMeter: (metered: Metered) => number,
): number {
  const upTo = (at: number) => {
    const { bookings } = book(metersOf(limit, meters), unpaid, (metered) => Math.min(frontierOfMeter(metered), at));
    return sum(bookings.map(({ chargedMicro }) => chargedMicro));
  };
  return upTo(limit.to) - upTo(limit.countsFrom);
}

/**
 * Returns the GPU time until the next settlement that nothing is left for, and the limits that are used up by then, in the order of time.
 * A limit that ends GPU time leaves more of the balance and of other limits, so each is looked for with those before it.
 */
function findUnpaid(account: Account, now: number): { unpaid: Unpaid; reached: Reached[] } {
  const { meters } = account;
  const horizon = now + PERIOD_MS;
  const limited = new Map<number, Span[]>();
  const uncovered: Uncovered[] = [];
  const reached: Reached[] = [];
  const left = new Set(account.limits);
  for (;;) {
    const unpaid = withEmpty(account, { empty: [], limited, uncovered: [...uncovered] }, now);
    // What the balance does not cover of a millisecond is known only once the limits that end in it are.
    const balance = unpaid.uncovered.slice(uncovered.length).map((one) => ({ ...one, at: one.at + 1 }));
    const before = { ...unpaid, uncovered: [...uncovered, ...balance] };
    const next = firstReached([...left], meters, before, horizon);
    if (!next) return { unpaid: { ...unpaid, empty: closeEnd(unpaid.empty, horizon) }, reached };
    reached.push(next);
    left.delete(next.limit);
    uncovered.push(...uncoveredBy(next, meters, before));
    for (const { interval } of intervalsOf(next.limit, meters))
      limited.set(interval.id, joined([...(limited.get(interval.id) ?? []), spanOf(next)]));
  }
}

/**
 * Adds the spans without any balance until the next settlement: each begins in the millisecond in which the cost reaches the balance, and
 * ends at the next entry that raises the balance. Adds also the cost in each first millisecond that the balance did not cover.
 */
function withEmpty(
  { balanceMicro, entries, meters }: Account,
  { limited, uncovered: others }: Unpaid,
  now: number,
): Unpaid {
  const horizon = now + PERIOD_MS;
  const pending = meters.flatMap(({ intervals }) => intervals.map(({ settledTo }) => settledTo));
  const start = pending.reduce((least, at) => Math.min(least, at), now);
  const later = entries.filter(({ at }) => at > start && at <= horizon);
  const empty: Span[] = [];
  const uncovered = [...others];
  const unpaid = { empty, limited, uncovered };
  let left = balanceMicro - later.reduce((sum, { amountMicro }) => sum + amountMicro, 0);
  let from = start;
  for (const { at, amountMicro } of [...later, { at: horizon, amountMicro: 0 }]) {
    const since = firstUnpaid(meters, unpaid, left, from, at);
    if (since !== undefined) {
      if (since > from) uncovered.push(...uncoveredAt(meters, unpaid, since, dueAt(meters, unpaid, since) - left));
      extend(empty, { from: since, to: at });
    }
    left += amountMicro;
    from = at;
  }
  return unpaid;
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
  unpaid: Unpaid,
  left: number,
  from: number,
  to: number,
): number | undefined {
  const costs = meters.some(({ meter, ratePerHourMicro }) => meter === 'gpu' && ratePerHourMicro > 0);
  // GPUs that cost nothing go on at a balance of zero, but not in debt.
  const isUnpaid = (at: number) => {
    const due = dueAt(meters, unpaid, at);
    return due >= left && (due > 0 || left < 0 || costs);
  };
  if (isUnpaid(from)) return from;
  return isUnpaid(to) ? firstAt(from, to, isUnpaid) : undefined;
}
