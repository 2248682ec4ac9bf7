import type { NeedKind } from '../../domain/machines/need.js';

/** The items of one kind that are named; of the others there is only the count. */
export const MOST_ITEMS = 10;

/** One thing that needs an act of an operator. */
export interface NeedItem {
  /** The path of its object after `/v1/`, as in events; empty: it concerns the control plane. */
  subject: string;
  /** The name of the object; null: it has none. */
  name: string | null;
  /** Why, or what follows; null: the kind says it all. */
  message: string | null;
  /** In ms since 1970 UTC; null: not known. */
  since: number | null;
  /** The machine on which it can be mended. */
  machine_id: string | null;
  /** The organization that it concerns. */
  organization_id: string | null;
}

/** Everything of one kind that needs an act. */
export interface Need {
  kind: NeedKind;
  count: number;
  /** The first {@link MOST_ITEMS}. */
  items: NeedItem[];
}

export function needOf(kind: NeedKind, count: number, items: readonly Partial<NeedItem>[]): Need[] {
  if (count === 0) return [];
  return [{ kind, count, items: items.slice(0, MOST_ITEMS).map((item) => ({ ...NOTHING, ...item })) }];
}

/** Returns items in the order of their age; those of no known age come last. */
export function oldestFirst<Item extends { since: number | null }>(items: readonly Item[]): Item[] {
  return [...items].sort((one, other) => (one.since ?? Infinity) - (other.since ?? Infinity) || 0);
}

const NOTHING: NeedItem = {
  subject: '',
  name: null,
  message: null,
  since: null,
  machine_id: null,
  organization_id: null,
};
