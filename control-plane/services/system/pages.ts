import { sql, type RawBuilder, type SelectQueryBuilder } from 'kysely';
import { invalidField } from '../../domain/refusal.js';
import type { Schema } from '../../store/schema.js';
import type { Tx } from '../../store/store.js';

export interface PageRequest {
  limit?: number;
  /** The `next_cursor` of the previous page. */
  cursor?: string;
}

export interface Page<Item> {
  items: Item[];
  /** Null on the last page. */
  next_cursor: string | null;
}

/** A page that can end before its limit, because a service looks at so many rows in one turn or its items are long. */
export interface Slice<Item> extends Page<Item> {
  /** What the items take in the database, in bytes; absent where they are short. */
  bytes?: number;
}

/** Text that is read and sent in one turn of the event loop, less the last item of it: a few milliseconds of work. */
export const SLICE_BYTES = 1024 * 1024;

/** A page, or a whole list, which has no cursor. */
export type ListOrPage<Item> = Pick<Page<Item>, 'items'> & Partial<Page<Item>>;

type Direction = 'asc' | 'desc';
type Key = readonly (string | number)[];

/** The order of a list. */
export interface Order<Item> {
  /** Columns, the most significant first. Together they must be unique. */
  by: Readonly<Record<string, Direction>>;
  /** Returns the values of the item in these columns. */
  keyOf: (item: Item) => Key;
}

const DEFAULT_LIMIT = 100;

/** Returns the order of most lists. */
export function newestFirst<Item extends { created_at: number; id: string }>(): Order<Item> {
  return { by: { created_at: 'desc', id: 'asc' }, keyOf: ({ created_at, id }) => [created_at, id] };
}

/** Returns a text that comes after every text that begins with a prefix: the prefix with the last character of Unicode behind it. */
export const endOf = (prefix: string): string => `${prefix}\u{10ffff}`;

/**
 * Returns one page of a query, in order, of 100 rows if the request has no limit. A row that is added or removed between two
 * requests moves no other row to another page. Refuses a cursor of another list with VALIDATION_FAILED.
 */
export function pageOf<Tables extends keyof Schema, Item>(
  tx: Tx,
  rows: SelectQueryBuilder<Schema, Tables, Item>,
  request: PageRequest,
  { by, keyOf }: Order<Item>,
): Page<Item> {
  return cut(tx.all(restOf(rows, request, by).limit(sizeOf(request) + 1)), request, keyOf);
}

/** Returns the first items, up to the one with which they have {@link SLICE_BYTES}: so there is one at least. */
export function firstBytesOf<Item extends { bytes: number }>(items: readonly Item[]): Item[] {
  let bytes = 0;
  const last = items.findIndex((item) => (bytes += item.bytes) >= SLICE_BYTES);
  return items.slice(0, last < 0 ? items.length : last + 1);
}

/** Returns a page of the list without the items that are too many bytes for one turn: see {@link firstBytesOf}. */
export function shortPage<Item extends { bytes: number }>(page: Page<Item>, { keyOf }: Order<Item>): Page<Item> {
  const items = firstBytesOf(page.items);
  const last = items.at(-1);
  return items.length < page.items.length && last ? { items, next_cursor: writeCursor(keyOf(last)) } : page;
}

/** Returns the query for the rows after the cursor, in order. */
export function restOf<Tables extends keyof Schema, Item>(
  rows: SelectQueryBuilder<Schema, Tables, Item>,
  { cursor }: PageRequest,
  by: Order<Item>['by'],
): SelectQueryBuilder<Schema, Tables, Item> {
  const columns = Object.entries(by);
  const ordered = columns.reduce((some, [name, direction]) => some.orderBy(sql.ref(name), direction), rows);
  return cursor === undefined ? ordered : ordered.where(after(columns, readCursor(cursor, by)));
}

/** Returns one page of items that are already in order, or all of them if the request has neither limit nor cursor. */
export function pageFrom<Item>(items: Item[], request: PageRequest, { by, keyOf }: Order<Item>): ListOrPage<Item> {
  if (!isPaged(request)) return { items };
  if (request.cursor === undefined) return cut(items, request, keyOf);
  const key = readCursor(request.cursor, by);
  const at = items.findIndex((item) => keyOf(item).every((value, index) => value === key[index]));
  const next = at >= 0 ? at + 1 : items.findIndex((item) => compare(keyOf(item), key, Object.values(by)) > 0);
  return cut(next >= 0 ? items.slice(next) : [], request, keyOf);
}

function isPaged({ limit, cursor }: PageRequest): boolean {
  return limit !== undefined || cursor !== undefined;
}

function sizeOf({ limit = DEFAULT_LIMIT }: PageRequest): number {
  return limit;
}

/** Cuts a page from the rest of the list. `left` must have at least one item more than the page if the list goes on. */
function cut<Item>(left: Item[], request: PageRequest, keyOf: Order<Item>['keyOf']): Page<Item> {
  const items = left.slice(0, sizeOf(request));
  const last = items.at(-1);
  return { items, next_cursor: left.length > items.length && last ? writeCursor(keyOf(last)) : null };
}

/**
 * Returns the condition for rows after the key: a row is beyond the key in one column and equal in all columns before it. The first
 * column has a bound of its own, too, so that SQLite can start the index search there.
 */
function after(columns: [string, Direction][], key: Key): RawBuilder<boolean> {
  const [[first, direction] = ['', 'asc' as const]] = columns;
  // All columns have the same direction: one row comparison, which SQLite can search in an index.
  if (columns.every(([, other]) => other === direction)) {
    const names = sql.join(columns.map(([name]) => sql.ref(name)));
    return sql<boolean>`(${names}) ${sql.raw(direction === 'asc' ? '>' : '<')} (${sql.join(key)})`;
  }
  const beyond = columns.map(([name, direction], index) => {
    const equal = columns.slice(0, index).map(([before], at) => sql`${sql.ref(before)} = ${key[at]} AND `);
    const operator = sql.raw(direction === 'asc' ? '>' : '<');
    return sql`(${sql.join(equal, sql``)}${sql.ref(name)} ${operator} ${key[index]})`;
  });
  return sql<boolean>`(${sql.ref(first)} ${sql.raw(direction === 'asc' ? '>=' : '<=')} ${key[0]} AND (${sql.join(beyond, sql` OR `)}))`;
}

function compare(one: Key, other: Key, directions: Direction[]): number {
  const at = directions.findIndex((_, index) => one[index] !== other[index]);
  const [a = 0, b = 0] = [one[at], other[at]];
  return at < 0 ? 0 : a > b === (directions[at] === 'asc') ? 1 : -1;
}

/** Writes the cursor of the rows after the one with this key. */
export function writeCursor(key: Key): string {
  return Buffer.from(JSON.stringify(key)).toString('base64url');
}

/** Returns the key that {@link writeCursor} has written. Refuses with VALIDATION_FAILED what is no key with as many columns. */
export function readCursor(cursor: string, by: Order<never>['by']): Key {
  const key = parse(Buffer.from(cursor, 'base64url').toString());
  const isKey = Array.isArray(key) && key.every((value) => typeof value === 'string' || typeof value === 'number');
  if (!isKey || key.length !== Object.keys(by).length)
    throw invalidField('cursor', 'must be the next_cursor of a page of this list');
  return key;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
