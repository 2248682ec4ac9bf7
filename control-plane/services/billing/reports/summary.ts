import { DAY_MS } from '../../../../shared/time.js';
import type { Caller } from '../../../domain/caller.js';
import type { ChargeGroup } from '../../../domain/money/money.js';
import { invalidField } from '../../../domain/refusal.js';
import { compileOnce, listIn, query, sql } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { readCursor, writeCursor, type Page, type PageRequest } from '../../system/pages.js';
import type { Core } from '../../system/platform.js';
import { dateOf } from './statements.js';

export const SUMMARY_GROUPS = ['instance', 'template', 'api_key', 'member', 'label', 'day'] as const;
export type SummaryGroup = ChargeGroup | 'day';

export interface SummaryRequest extends PageRequest {
  by: SummaryGroup;
  /** The first day, as YYYY-MM-DD in UTC; without it, 29 days before the last one. */
  from?: string;
  /** The last day; without it, today. */
  to?: string;
}

/** What the use of one instance, template, API key, member, label or day has cost in the range of days. */
export interface SummaryItem {
  /** Null: not deployed with an API key, or without a label. */
  key: string | null;
  name: string | null;
  gpu_micro: number;
  disk_micro: number;
  total_micro: number;
}

const MOST_DAYS = 366;
const DEFAULT_DAYS = 30;
/** Most items of one slice: with a row for each day of the range, adding them up takes some milliseconds. */
const SLICE_ITEMS = 50;
/** Most rows that one slice looks at to find the first one of each key. */
const MOST_SCANNED = 250;

/** A range of UTC days since 1970. */
interface Range {
  from: number;
  to: number;
}

/** The place after the row of a key on a day; null: the beginning. */
type Position = { day: number; key: string } | null;

/**
 * Returns the next items of a summary by day of use, in the order of their first day in the range, then of their keys. The list goes on
 * while there is a `next_cursor`: because a slice adds up 50 items and looks at 250 rows at most, it can have fewer items than the limit,
 * or none. Refuses with VALIDATION_FAILED a range that is reversed or longer than 366 days, and a cursor of another list.
 */
export function summarySlice(core: Core, caller: Caller, request: SummaryRequest): Page<SummaryItem> {
  return core.store.transact((tx) => {
    const { by, limit = SLICE_ITEMS } = request;
    const { range, position } = placeOf(tx, request);
    const most = Math.min(limit, SLICE_ITEMS);
    const { organizationId } = caller;
    const { items, at } =
      by === 'day'
        ? daysAfter(tx, { organizationId, ...range }, position, most)
        : keysAfter(tx, { organizationId, by, ...range }, position, most);
    return { items, next_cursor: at && writeCursor([by, range.from, range.to, at.day, at.key]) };
  });
}

interface Slice {
  items: SummaryItem[];
  /** Where the next slice begins; null: there is none. */
  at: Position;
}

/** Returns the range of a request and how far it was read. A cursor keeps the range of its first request, also over midnight. */
function placeOf(tx: Tx, { by, from, to, cursor }: SummaryRequest): { range: Range; position: Position } {
  if (cursor === undefined) return { range: rangeOf(tx, from, to), position: null };
  const [group, first, last, day, key] = readCursor(cursor, {
    by: 'asc',
    from: 'asc',
    to: 'asc',
    day: 'asc',
    key: 'asc',
  });
  const isMeant = (date: string | undefined, number: unknown) => date === undefined || dayOf(date) === number;
  const isNumber = (value: unknown): value is number => Number.isSafeInteger(value);
  const isPlace = isNumber(first) && isNumber(last) && isNumber(day) && typeof key === 'string';
  const isInRange = isPlace && last - first < MOST_DAYS && first <= day && day <= last;
  if (!isInRange || group !== by || !isMeant(from, first) || !isMeant(to, last))
    throw invalidField('cursor', 'must be the next_cursor of a page of this list');
  return { range: { from: first, to: last }, position: { day, key } };
}

function rangeOf({ now }: Tx, first: string | undefined, last: string | undefined): Range {
  const to = last === undefined ? Math.floor(now / DAY_MS) : dayOf(last);
  const from = first === undefined ? to - DEFAULT_DAYS + 1 : dayOf(first);
  if (from > to) throw invalidField('from', 'must not be after `to`, which is today if it is not given');
  if (to - from >= MOST_DAYS) throw invalidField('from', `must be at most ${MOST_DAYS - 1} days before \`to\``);
  return { from, to };
}

/** Returns the number of a day that is written as YYYY-MM-DD, in days since 1970. */
function dayOf(date: string): number {
  return Date.parse(`${date}T00:00:00Z`) / DAY_MS;
}

function daysAfter(tx: Tx, scope: Range & { organizationId: string }, position: Position, most: number): Slice {
  const days = tx.all(daysOfRange({ ...scope, from: position ? position.day + 1 : scope.from, most: most + 1 }));
  const items = days.slice(0, most).map(({ day, gpu_micro, disk_micro }) => {
    const date = dateOf(day);
    return { key: date, name: date, gpu_micro, disk_micro, total_micro: gpu_micro + disk_micro };
  });
  const last = days[most - 1];
  return { items, at: days.length > most && last ? { day: last.day, key: '' } : null };
}

const daysOfRange = compileOnce((its: { organizationId: string; from: number; to: number; most: number }) =>
  query
    .selectFrom('organization_days')
    .select(['day', 'gpu_micro', 'disk_micro'])
    .where('organization_id', '=', its.organizationId)
    .where('day', '>=', its.from)
    .where('day', '<=', its.to)
    .orderBy('day')
    .limit(its.most),
);

interface KeyScope extends Range {
  organizationId: string;
  by: ChargeGroup;
}

/** Each key stands where its first day in the range is: later use moves none of them. */
function keysAfter(tx: Tx, scope: KeyScope, position: Position, most: number): Slice {
  const limits = { ...scope, most: MOST_SCANNED };
  const rows = tx.all(position ? rowsAfter({ ...limits, ...position }) : rowsFrom(limits));
  const keys: string[] = [];
  for (const [index, { key, day, is_repeated }] of rows.entries()) {
    if (is_repeated) continue;
    if (keys.length === most) {
      const { day: atDay, key: atKey } = rows[index - 1] ?? { day, key };
      return { items: itemsOf(tx, scope, keys), at: { day: atDay, key: atKey } };
    }
    keys.push(key);
  }
  const last = rows.at(-1);
  return { items: itemsOf(tx, scope, keys), at: rows.length === MOST_SCANNED && last ? last : null };
}

/** Selects the rows of a range by day, each with whether its key has an earlier one there. */
function rowsOf({ organizationId, by, from, to, most }: KeyScope & { most: number }) {
  return query
    .selectFrom('charge_days as charged')
    .select(['day', 'key'])
    .select(
      sql<0 | 1>`EXISTS (
        SELECT 1 FROM charge_days AS earlier
        WHERE earlier.organization_id = charged.organization_id AND earlier.grouped_by = charged.grouped_by
          AND earlier.key = charged.key AND earlier.day >= ${from} AND earlier.day < charged.day)`.as('is_repeated'),
    )
    .where('organization_id', '=', organizationId)
    .where('grouped_by', '=', by)
    .where('day', '<=', to)
    .orderBy('day')
    .orderBy('key')
    .limit(most);
}

interface Scan extends Record<string, string | number> {
  organizationId: string;
  by: ChargeGroup;
  from: number;
  to: number;
  most: number;
}

const rowsFrom = compileOnce((its: Scan) => rowsOf(its).where('day', '>=', its.from));

const rowsAfter = compileOnce((its: Scan & { day: number; key: string }) =>
  rowsOf(its).where(sql<boolean>`(day, key) > (${its.day}, ${its.key})`),
);

/** Returns what each key has cost in the range, in their order. */
function itemsOf(tx: Tx, scope: KeyScope, keys: readonly string[]): SummaryItem[] {
  const { organizationId, by, from, to } = scope;
  if (keys.length === 0) return [];
  const sums = tx.all(sumsOf({ organizationId, by, from, to, keys: JSON.stringify(keys) }));
  const names = namesOf(tx, by, sums);
  const items = sums.map(({ key, gpu_micro, disk_micro }) => {
    const name = names.get(key) ?? null;
    return [key, { key: key || null, name, gpu_micro, disk_micro, total_micro: gpu_micro + disk_micro }] as const;
  });
  const byKey = new Map(items);
  return keys.flatMap((key) => byKey.get(key) ?? []);
}

/** `instance_id` is of the last day: SQLite takes it from the row with the greatest day. */
const sumsOf = compileOnce((its: { organizationId: string; by: ChargeGroup; from: number; to: number; keys: string }) =>
  query
    .selectFrom('charge_days')
    .select(['key', 'instance_id'])
    .select(({ fn }) => [
      fn.sum<number>('gpu_micro').as('gpu_micro'),
      fn.sum<number>('disk_micro').as('disk_micro'),
      fn.max('day').as('last_day'),
    ])
    .where('organization_id', '=', its.organizationId)
    .where('grouped_by', '=', its.by)
    .where('key', 'in', listIn(its.keys))
    .where('day', '>=', its.from)
    .where('day', '<=', its.to)
    .groupBy('key'),
);

interface Named {
  key: string;
  instance_id: string;
}

/**
 * Returns what the keys are called. A template is called as it was for the instance that used it last: its owner can be another
 * organization, which has changed or hidden it since.
 */
function namesOf(tx: Tx, by: ChargeGroup, sums: readonly Named[]): ReadonlyMap<string, string | null> {
  const all = new Map<string, string | null>(sums.map(({ key }) => [key, key || null]));
  if (by === 'instance' || by === 'template') {
    const ids = JSON.stringify(sums.map(({ instance_id }) => instance_id));
    const instances = new Map(tx.all(namedInstances({ ids })).map((row) => [row.id, row]));
    const nameIn = (id: string) => instances.get(id)?.[by === 'instance' ? 'label' : 'template_name'] ?? null;
    return new Map(sums.map(({ key, instance_id }) => [key, nameIn(instance_id)]));
  }
  if (by !== 'api_key') return all;
  const keys = tx.all(namedKeys({ ids: JSON.stringify([...all.keys()]) }));
  return new Map(keys.map(({ id, name, prefix }) => [id, `${name} (${prefix}…)`]));
}

const namedInstances = compileOnce(({ ids }: { ids: string }) =>
  query
    .selectFrom('instances')
    .select(['id', 'label', sql<string | null>`template_snapshot ->> '$.name'`.as('template_name')])
    .where('id', 'in', listIn(ids)),
);

const namedKeys = compileOnce(({ ids }: { ids: string }) =>
  query.selectFrom('api_keys').select(['id', 'name', 'prefix']).where('id', 'in', listIn(ids)),
);
