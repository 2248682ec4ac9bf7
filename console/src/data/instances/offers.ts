import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import type { paths } from '../../../../client/api/index.js';
import { api } from '../api/api.js';
import type { Offer } from '../api/models.js';
import { inPages } from '../api/pages.js';

/** Which offers are looked for, as the API has it; those that fit `template_id` come first. */
export type Wanted = Pick<
  NonNullable<paths['/v1/offers']['get']['parameters']['query']>,
  'template_id' | 'gpu_model' | 'num_gpus' | 'region' | 'max_price_per_hour_micro' | 'vm_capable' | 'sort'
>;

/** Other organizations rent, too, and no event tells. */
const AGAIN_MS = 30_000;

/** The offers that can be rented now, `limit` at a time. */
export const freeOffers = (wanted: Wanted, limit: number) =>
  inPages(
    ['offers', 'free', wanted, limit],
    (page, signal) => api.get('/v1/offers', { params: { query: { ...wanted, ...page } }, signal }),
    { limit, refetchInterval: AGAIN_MS },
  );

/** How many offers there are, and of what. */
export const offerCounts = ({ sort: _, ...wanted }: Wanted) =>
  queryOptions({
    queryKey: ['offers', 'counts', wanted],
    queryFn: ({ signal }) => api.get('/v1/offers/counts', { params: { query: wanted }, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: AGAIN_MS,
  });

/** An offer in any state. */
export const offerOf = (id: string | undefined) =>
  queryOptions({
    queryKey: ['offers', 'one', id],
    queryFn: ({ signal }) => api.get('/v1/offers/{id}', { params: { path: { id: id ?? '' } }, signal }),
    enabled: id !== undefined,
    refetchInterval: AGAIN_MS,
  });

/** What is rented, in a few words. */
export function nameOfOffer({ gpu_model, num_gpus }: Pick<Offer, 'gpu_model' | 'num_gpus'>): string {
  return gpu_model === null ? 'No GPU' : `${num_gpus} × ${gpu_model}`;
}
