import type { SelectQueryBuilder } from 'kysely';
import type { Schema } from '../store/schema.js';
import type { Tx } from '../store/store.js';

export interface PageRequest {
  limit?: number;
  /** Where the page before has ended: a whole number in digits. */
  cursor?: string;
}

export interface Page<Item> {
  items: Item[];
  /** Absent when no page was asked for; null on the last one. */
  next_cursor?: string | null;
}

const DEFAULT_LIMIT = 100;

/** One page of an ordered query that begins after the cursor already; everything, when neither limit nor cursor is given. */
export function pageOf<Tables extends keyof Schema, Item>(
  tx: Tx,
  ordered: SelectQueryBuilder<Schema, Tables, Item>,
  { limit, cursor }: PageRequest,
  positionOf: (item: Item) => number,
): Page<Item> {
  if (limit === undefined && cursor === undefined) return { items: tx.all(ordered) };
  const size = limit ?? DEFAULT_LIMIT;
  const found = tx.all(ordered.limit(size + 1));
  const items = found.slice(0, size);
  const last = items.at(-1);
  return { items, next_cursor: found.length > size && last ? String(positionOf(last)) : null };
}
