import { infiniteQueryOptions, keepPreviousData } from '@tanstack/react-query';
import { api } from '../../data/api.js';
import type { Offer } from '../../data/models.js';

/** Offers that are read at a time. */
const ROWS = 10;

/** Which offers are looked for: those with GPUs of a model, ranked for a template. */
export interface Wanted {
  template: string | undefined;
  gpu: string | undefined;
}

/** Where a page of the ranked list begins: among the offers that fit, or behind them among the others. */
interface Place {
  fits: boolean;
  cursor?: string;
}

/** The offers that can be rented now, page by page: those that fit the template first, each part from the lowest price on. */
export const freeOffers = (wanted: Wanted) =>
  infiniteQueryOptions({
    queryKey: ['offers', 'ranked', wanted],
    queryFn: ({ pageParam, signal }) => readPage(wanted, pageParam, signal),
    initialPageParam: { fits: true },
    getNextPageParam: ({ next }) => next,
    placeholderData: keepPreviousData,
    // Other organizations rent, too, and no event tells.
    refetchInterval: 30_000,
  });

async function readPage(
  wanted: Wanted,
  { fits, cursor }: Place,
  signal: AbortSignal,
): Promise<{ items: Offer[]; next: Place | undefined }> {
  const { template, gpu } = wanted;
  const query = {
    limit: ROWS,
    ...(cursor === undefined ? {} : { cursor }),
    ...(gpu === undefined ? {} : { gpu_model: gpu }),
    ...(template === undefined ? {} : { template_id: template, fits }),
  };
  const { items, next_cursor } = await api.get('/v1/offers', { params: { query }, signal });
  if (next_cursor) return { items, next: { fits, cursor: next_cursor } };
  if (template === undefined || !fits) return { items, next: undefined };
  const others = await readPage(wanted, { fits: false }, signal);
  return { items: [...items, ...others.items], next: others.next };
}
