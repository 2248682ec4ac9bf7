import { infiniteQueryOptions, keepPreviousData, type QueryKey } from '@tanstack/react-query';

/** Items of a list that are read at a time, unless the list says another number. */
const PAGE = 100;

/** A page that is asked for. */
export interface Asked {
  limit: number;
  cursor?: string;
}

interface Answer {
  items: unknown[];
  next_cursor?: string | null;
}

/** Returns options for `useInfiniteQuery` that read a list of the API page by page; until another list is read, the one before stays. */
export const inPages = <Page extends Answer>(
  queryKey: QueryKey,
  read: (page: Asked, signal: AbortSignal) => Promise<Page>,
  { limit = PAGE, refetchInterval = false }: { limit?: number; refetchInterval?: number | false } = {},
) =>
  infiniteQueryOptions({
    queryKey,
    queryFn: ({ signal, pageParam }) =>
      read({ limit, ...(pageParam === undefined ? {} : { cursor: pageParam }) }, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next_cursor }: Page) => next_cursor ?? undefined,
    placeholderData: keepPreviousData,
    refetchInterval,
  });

/** Returns the items of the pages that were read. */
export const itemsOf = <Item>({ pages }: { pages: readonly { items: Item[] }[] }): Item[] =>
  pages.flatMap(({ items }) => items);
