import { MINUTE_MS } from '../../../../shared/time.js';
import type { Span } from '../../../domain/money/metered.js';
import { isPeriod, periodAt, periodsIn, type Period } from '../../../domain/money/spend-cap.js';
import type { SpendLimit } from '../../../domain/money/spend-limit.js';
import type { Row } from '../../../store/schema.js';
import type { Tx } from '../../../store/store.js';
import { findCapRows, isOnPeriod, type PeriodCap } from '../../organizations/keys/cap-rows.js';
import { findEarlierLimits, type EarlierLimitRow } from './earlier-limits.js';
import { spentByDays, spentIn, type SpentDay } from './spent-days.js';

/** What limits need to know of a metered interval and its instance. */
export type LimitedInterval = Pick<
  Row<'instances'>,
  'organization_id' | 'stop_at' | 'max_charge_micro' | 'max_charge_from' | 'spend_micro'
> & { instance_id: string; settled_to: number; capped_key_id: string | null };

/** Up to when a settlement counts an interval as used. */
type UsedTo<Interval> = (interval: Interval) => number;

/** What limits the charges of an organization. */
export interface LoadedLimits {
  limits: readonly SpendLimit[];
  /** The caps on periods that are in force, with what was spent on the days of at least the present one. */
  caps: { cap: PeriodCap; days: readonly SpentDay[] }[];
  /** Whether earlier limits are kept, also if they concern nothing that is settled now. */
  hasEarlier: boolean;
}

/** A settlement looks so far ahead: a day or month that begins meanwhile counts. */
export const SETTLED_AHEAD_MS = MINUTE_MS;

/**
 * Loads the limits and caps that concern unsettled intervals of some organizations, by organization, with a few statements for all of
 * them. A day or month is loaded only if it is the present one, or if unsettled use in it is known: so instances whose host is away do not
 * cost more the longer it is.
 */
export function loadLimits<Interval extends LimitedInterval>(
  tx: Tx,
  intervals: ReadonlyMap<string, readonly Interval[]>,
  usedTo: UsedTo<Interval>,
): ReadonlyMap<string, LoadedLimits> {
  const caps = capsOn(tx, [...intervals.values()].flat());
  const earlier = findEarlierLimits(tx, [...intervals.keys()]);
  const all = [...intervals].map(([id, rows]) => {
    const its = earlier.filter(({ organization_id }) => organization_id === id);
    const own = caps.filter(({ organization_id }) => organization_id === id);
    return { id, rows, earlier: its, spenders: spendersOf({ id, rows, caps: own, earlier: its }, usedTo, tx.now) };
  });
  const days = spentByDays(
    tx,
    all.flatMap(({ spenders }) => spenders),
  );
  return new Map(
    all.map(({ id, rows, earlier: its, spenders }) => {
      const known = spenders.map((spender) => ({ ...spender, days: days.get(spender.id) ?? [] }));
      const instances = new Map(rows.map((row) => [row.instance_id, row]));
      const limits = [
        ...[...instances.values()].flatMap(limitsOf),
        ...its.flatMap((row) => (instances.has(row.limited_id) ? earlierLimitOf(row) : [])),
        ...known.flatMap(limitsOfSpender),
      ];
      const inForce = known.flatMap(({ caps: own, days: spent }) => own.map((cap) => ({ cap, days: spent })));
      return [id, { limits, caps: inForce, hasEarlier: its.length > 0 }];
    }),
  );
}

function limitsOf({
  instance_id: instanceId,
  stop_at,
  max_charge_micro,
  max_charge_from,
  spend_micro,
}: LimitedInterval) {
  const its = { countsFrom: 0, to: Infinity, earlier: null };
  const limits: SpendLimit[] = [];
  if (stop_at !== null) limits.push({ ...its, name: { kind: 'stop_at', instanceId }, from: stop_at, leftMicro: null });
  if (max_charge_micro !== null) {
    const leftMicro = max_charge_micro - spend_micro;
    limits.push({ ...its, name: { kind: 'max_charge', instanceId }, from: max_charge_from ?? 0, leftMicro });
  }
  return limits;
}

/** Returns an earlier limit of an instance. */
function earlierLimitOf({
  id,
  kind,
  limited_id,
  limit_micro,
  from_at,
  until_at,
  spent_micro,
}: EarlierLimitRow): SpendLimit[] {
  if (isPeriod(kind)) return [];
  const leftMicro = limit_micro === null ? null : limit_micro - spent_micro;
  const name = { kind, instanceId: limited_id };
  const times = { countsFrom: 0, from: from_at, to: until_at };
  return [
    {
      name,
      ...times,
      leftMicro,
      earlier: { rowId: leftMicro === null ? null : id },
    },
  ];
}

/** Returns the caps on periods of the organizations of these intervals, and of the API keys for which they count. */
function capsOn(tx: Tx, intervals: readonly LimitedInterval[]): PeriodCap[] {
  const ids = new Set(
    intervals.flatMap(({ organization_id, capped_key_id }) => [organization_id, capped_key_id ?? []].flat()),
  );
  return findCapRows(tx, [...ids]).filter(isOnPeriod);
}

/** An organization or an API key with caps on periods, now or earlier. */
interface Spender {
  id: string;
  organizationId: string;
  apiKeyId: string | null;
  caps: readonly PeriodCap[];
  windows: Window[];
  /** What is spent from here on is needed. */
  from: number;
}

/** A period of a cap, as far as the cap was in force. */
interface Window extends Span {
  kind: Period;
  period: Span;
  limitMicro: number;
  earlier: EarlierLimitRow | null;
}

interface Limited<Interval> {
  id: string;
  rows: readonly Interval[];
  caps: readonly PeriodCap[];
  earlier: readonly EarlierLimitRow[];
}

/** Returns the spenders of an organization: of limits that are used up in one millisecond, the narrower comes first. */
function spendersOf<Interval extends LimitedInterval>(
  { id: organizationId, rows, caps, earlier }: Limited<Interval>,
  usedTo: UsedTo<Interval>,
  now: number,
): Spender[] {
  const ofCaps = earlier.filter(({ kind }) => isPeriod(kind));
  const ids = new Set([...caps.map(({ owner_id }) => owner_id), ...ofCaps.map(({ limited_id }) => limited_id)]);
  const keys = [...ids].filter((id) => id !== organizationId);
  return [...keys, organizationId].flatMap((id) => {
    const apiKeyId = id === organizationId ? null : id;
    const its = apiKeyId === null ? rows : rows.filter((row) => row.capped_key_id === apiKeyId);
    const own = caps.filter(({ owner_id }) => owner_id === id);
    const used = ids.has(id) ? its.map((row) => ({ from: row.settled_to, to: usedTo(row) })) : [];
    const windows = [
      ...ofCaps.filter(({ limited_id }) => limited_id === id).flatMap((row) => earlierWindows(row, used)),
      ...own.flatMap((cap) => presentWindows(cap, used, now)),
    ];
    if (windows.length === 0) return [];
    const from = Math.min(...windows.map(({ period }) => period.from));
    return [{ id, organizationId, apiKeyId, caps: own, windows, from }];
  });
}

function presentWindows(
  { kind, amount_micro: limitMicro, from_at: begin }: PeriodCap,
  used: readonly Span[],
  now: number,
): Window[] {
  const ahead = { from: now, to: now + SETTLED_AHEAD_MS };
  const periods = periodsUsed(kind, [...used, ahead], { from: Math.min(begin, now), to: ahead.to });
  return periods.map((period) => {
    const from = Math.max(period.from, begin);
    return { kind, period, from, to: period.to, limitMicro, earlier: null };
  });
}

function earlierWindows(row: EarlierLimitRow, used: readonly Span[]): Window[] {
  const { kind, limit_micro: limitMicro, from_at, until_at } = row;
  if (!isPeriod(kind) || limitMicro === null) return [];
  return periodsUsed(kind, used, { from: from_at, to: until_at - 1 }).map((period) => {
    const [from, to] = [Math.max(period.from, from_at), Math.min(period.to, until_at)];
    return { kind, period, from, to, limitMicro, earlier: row };
  });
}

/** Returns the days or months of a span in which something is used, the oldest first. */
function periodsUsed(kind: Period, used: readonly Span[], { from, to }: Span): Span[] {
  const found = new Map<number, Span>();
  for (const one of used) {
    const [first, last] = [Math.max(one.from, from), Math.min(one.to, to)];
    if (one.from === one.to || first > last) continue;
    for (const period of periodsIn(kind, first, last)) found.set(period.from, period);
  }
  return [...found.values()].sort((a, b) => a.from - b.from);
}

function limitsOfSpender({ apiKeyId, windows, days }: Spender & { days: readonly SpentDay[] }): SpendLimit[] {
  return windows.map(({ kind, period, from, to, limitMicro, earlier }) => {
    // What was spent later in the same day or month does not count for an earlier cap.
    const isCounted = earlier !== null && period.from === periodAt(kind, earlier.until_at - 1).from;
    return {
      name: {
        kind,
        apiKeyId,
      },
      countsFrom: period.from,
      from,
      to,
      leftMicro: limitMicro - (isCounted ? earlier.spent_micro : spentIn(days, period)),
      earlier: earlier && { rowId: isCounted ? earlier.id : null },
    };
  });
}
