import type { SelectQueryBuilder } from 'kysely';
import { invalidField } from '../../domain/refusal.js';
import type { Schema } from '../../store/schema.js';
import { sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { pageOf, restOf, writeCursor, type Order, type Page, type PageRequest } from './pages.js';

/** Most entries of a log that one page looks at to find those of a filter. */
export const MOST_SCANNED = 2_000;

/** From then on, and before then, in milliseconds since 1970. */
export interface Period {
  since?: number;
  until?: number;
}

/** How the entries of a log are found by their numbers, which rise with time. */
export interface Numbered {
  /** Returns the number of the newest entry, or 0. */
  newest: () => number;
  /** Returns the first entry with this number or a higher one. */
  next: (number: number) => { number: number; at: number } | undefined;
}

/** Returns the numbers of a period: from `from` on, and before `to`. Refuses times that contradict each other with VALIDATION_FAILED. */
export function numbersIn({ since, until }: Period, log: Numbered): { from: number; to: number } {
  if (since !== undefined && until !== undefined && until <= since)
    throw invalidField('until', 'must be later than since');
  return {
    from: since === undefined ? 0 : firstFrom(since, log),
    to: until === undefined ? Number.MAX_SAFE_INTEGER : firstFrom(until, log),
  };
}

/**
 * Returns the number of the first entry that is not before a time, or the one after the newest. Reads a few entries: their times rise
 * with their numbers, except where the clock was set back.
 */
function firstFrom(time: number, { newest, next }: Numbered): number {
  let [before, from] = [0, newest() + 1];
  while (from - before > 1) {
    const middle = Math.floor((before + from) / 2);
    const entry = next(middle);
    if (!entry || entry.at >= time) from = middle;
    else before = entry.number;
  }
  return from;
}

/**
 * Returns a page of the entries that `matching` leaves of `entries`, newest first. It looks at no more than {@link MOST_SCANNED}, so a
 * page can have fewer than its limit although it is not the last. The order has one column, with a number.
 */
export function pageOfMatching<Tables extends keyof Schema, Item>(
  tx: Tx,
  entries: SelectQueryBuilder<Schema, Tables, Item>,
  matching: (entries: SelectQueryBuilder<Schema, Tables, Item>) => SelectQueryBuilder<Schema, Tables, Item>,
  request: PageRequest,
  order: Order<Item>,
): Page<Item> {
  const last = tx.get(
    restOf(entries, request, order.by)
      .offset(sql.lit(MOST_SCANNED - 1))
      .limit(sql.lit(1)),
  );
  const [column = ''] = Object.keys(order.by);
  const scanned = last ? entries.where(sql<boolean>`${sql.ref(column)} >= ${order.keyOf(last)[0]}`) : entries;
  const { items, next_cursor } = pageOf(tx, matching(scanned), request, order);
  return { items, next_cursor: next_cursor ?? (last ? writeCursor(order.keyOf(last)) : null) };
}
