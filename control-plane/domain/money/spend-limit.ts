import {
  dueAt,
  firstAt,
  isCounted,
  uncoveredAt,
  type Interval,
  type Metered,
  type Span,
  type Uncovered,
  type Unpaid,
} from './metered.js';
import type { Period } from './spend-cap.js';

/** What a limit is: a time or an amount of one instance, or what an organization or an API key may spend in a UTC day or month. */
export type LimitName =
  | { kind: 'stop_at' | 'max_charge'; instanceId: string }
  /** `apiKeyId` is null for the cap of the organization. */
  | { kind: Period; apiKeyId: string | null };

/** An end of charges for GPU time. Disks count, and go on being charged beyond it. */
export interface SpendLimit {
  /** Also whose charges count, and what it stops. */
  name: LimitName;
  /** Charges for the time in [countsFrom, to) count. */
  countsFrom: number;
  /** The limit ends no time before `from`: it was set then. */
  from: number;
  to: number;
  /** What was left of it at the last settlement, in micro-dollars, which can be negative; null: no GPU time from `from` on is charged. */
  leftMicro: number | null;
  /** Null: it is in force. One that was changed at `to` ends GPU time only up to there, and stops nothing. */
  earlier: EarlierLimit | null;
}

/** Where it is counted what is charged for an earlier limit; null: nowhere, because its period was over at the change. */
export interface EarlierLimit {
  rowId: number | null;
}

/** A limit that is used up at `at`, in milliseconds since 1970. */
export interface Reached {
  limit: SpendLimit;
  at: number;
}

/** Returns the meters whose charges count for a limit; of an API key, only the part of each that counts for the key. */
export function metersOf({ name }: Pick<SpendLimit, 'name'>, meters: readonly Metered[]): readonly Metered[] {
  if ('instanceId' in name) return meters.filter(({ instanceId }) => instanceId === name.instanceId);
  const { apiKeyId: onlyOfKey } = name;
  if (onlyOfKey === null) return meters;
  const its = meters.map((metered) => ({ ...metered, onlyOfKey }));
  return its.filter((metered) => metered.intervals.some((interval) => isCounted(metered, interval)));
}

/**
 * Returns the GPU intervals that a limit ends: those that are open or not settled, unless they are settled beyond its end. What costs
 * nothing is ended by a time only.
 */
export function intervalsOf(
  limit: SpendLimit,
  meters: readonly Metered[],
): { instanceId: string; interval: Interval }[] {
  const gpus = metersOf(limit, meters).filter(({ meter }) => meter === 'gpu');
  return gpus
    .filter(({ ratePerHourMicro }) => ratePerHourMicro > 0 || limit.leftMicro === null)
    .flatMap((metered) => countedOf(metered).map((interval) => ({ instanceId: metered.instanceId, interval })))
    .filter(({ interval }) => interval.settledTo < limit.to);
}

function countedOf(metered: Metered): Interval[] {
  return metered.intervals.filter((interval) => isCounted(metered, interval));
}

/** Returns when the first of these limits is used up, if that is by `horizon`. */
export function firstReached(
  limits: readonly SpendLimit[],
  meters: readonly Metered[],
  unpaid: Unpaid,
  horizon: number,
): Reached | undefined {
  let first: Reached | undefined;
  for (const limit of limits) {
    if (first !== undefined && limit.from > first.at) continue;
    const at = reachedAt(limit, meters, unpaid, horizon);
    if (at !== undefined && (first === undefined || at < first.at)) first = { limit, at };
  }
  return first;
}

/** Returns the first millisecond in which a limit is used up, if that is by `horizon` and ends any GPU time. */
function reachedAt(limit: SpendLimit, meters: readonly Metered[], unpaid: Unpaid, horizon: number): number | undefined {
  const { from, to, leftMicro } = limit;
  const ends = ({ closedAt }: Interval) => closedAt === null || closedAt > from;
  if (from > horizon || !intervalsOf(limit, meters).some(({ interval }) => ends(interval))) return undefined;
  if (leftMicro === null) return from;
  const its = metersOf(limit, meters);
  const isUsedUp = (at: number) => dueOfLimit(limit, its, unpaid, at) >= leftMicro;
  const [begin, end] = [beginOf(limit, its), Math.min(to, horizon)];
  if (isUsedUp(begin)) return begin;
  return end > begin && isUsedUp(end) ? firstAt(begin, end, isUsedUp) : undefined;
}

/** Returns from when on the charges of a limit are not settled. `its` are its meters. */
function beginOf(limit: SpendLimit, its: readonly Metered[]): number {
  const settled = its.flatMap((metered) => countedOf(metered).map(({ settledTo }) => settledTo));
  return Math.max(limit.from, Math.min(...settled));
}

/** Returns the cost up to `at` of the time that counts for a limit and is not settled, in micro-dollars. */
function dueOfLimit(limit: SpendLimit, its: readonly Metered[], unpaid: Unpaid, at: number): number {
  return dueAt(its, unpaid, Math.min(at, limit.to)) - dueAt(its, unpaid, limit.countsFrom);
}

/** Returns the GPU time that a limit ends which is used up. */
export function spanOf({ limit, at }: Reached): Span {
  return { from: at, to: limit.earlier ? limit.to : Infinity };
}

/** Returns the part of the cost in the last millisecond of a limit that it does not cover. */
export function uncoveredBy({ limit, at }: Reached, meters: readonly Metered[], unpaid: Unpaid): Uncovered[] {
  const its = metersOf(limit, meters);
  if (limit.leftMicro === null || at <= beginOf(limit, its)) return [];
  return uncoveredAt(its, unpaid, at, dueOfLimit(limit, its, unpaid, at) - limit.leftMicro);
}
