import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Button } from '../../parts/button.js';
import { Loaded } from '../../parts/states.js';
import styles from './operator.module.css';
import { LOOK_AGAIN_MS } from './queries.js';

const PAGE = 100;

interface Asked {
  limit: number;
  cursor?: string;
}

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
  const query = useInfiniteQuery({
    queryKey: ['operator', ...name],
    queryFn: ({ signal, pageParam }) =>
      read({ limit: PAGE, ...(pageParam === undefined ? {} : { cursor: pageParam }) }, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
    placeholderData: keepPreviousData,
    ...(isReadOnce ? { staleTime: Infinity } : { refetchInterval: LOOK_AGAIN_MS }),
  });
  return (
    <Loaded query={query} rows={4}>
      {({ pages }) => {
        const items = pages.flatMap((page) => page.items);
        return (
          <>
            {items.length === 0 && !query.hasNextPage ? empty : children(items)}
            {query.hasNextPage && (
              <p className={styles.more}>
                <Button isBusy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
                  Show more
                </Button>
              </p>
            )}
          </>
        );
      }}
    </Loaded>
  );
}
