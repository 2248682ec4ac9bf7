import { useInfiniteQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { inPages, itemsOf, type Asked } from '../../data/api/pages.js';
import { Older } from '../../parts/controls/older.js';
import { Loaded } from '../../parts/controls/states.js';
import { LOOK_AGAIN_MS } from './queries.js';

interface Props<Item> {
  /** The key of the query, after `operator`. */
  name: readonly string[];
  read: (query: Asked, signal: AbortSignal) => Promise<{ items: Item[]; next_cursor?: string | null }>;
  /** It is read only once: each look asks somebody else. */
  isReadOnce?: boolean;
  /** What stands in the place of an empty list. */
  empty: ReactNode;
  children: (items: Item[]) => ReactNode;
}

/** A list of the API, page by page, looked at again every few seconds. */
export function Paged<Item>({ name, read, isReadOnce = false, empty, children }: Props<Item>) {
  const list = inPages(['operator', ...name], read);
  const query = useInfiniteQuery(
    isReadOnce
      ? { ...list, staleTime: Infinity }
      : // Each page costs a request: the more of them are shown, the less often they are read again.
        { ...list, refetchInterval: ({ state: { data } }) => LOOK_AGAIN_MS * (data?.pages.length ?? 1) },
  );
  return (
    <Loaded query={query} rows={4}>
      {(list) => {
        const items = itemsOf(list);
        return (
          <>
            {items.length === 0 && !query.hasNextPage ? empty : children(items)}
            <Older query={query}>Show more</Older>
          </>
        );
      }}
    </Loaded>
  );
}
