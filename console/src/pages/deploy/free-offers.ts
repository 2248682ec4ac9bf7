import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api } from '../../data/api.js';

/** Offers that are read at a time. */
const ROWS = 10;
/** Other organizations rent, too, and no event tells. */
const LIVE = { refetchInterval: 30_000 };

/** Which offers are looked for: those with GPUs of a model, ranked for a template. */
export interface Wanted {
  template: string | undefined;
  gpu: string | undefined;
}

/** The offers that can be rented now, page by page: those that fit the template first, each part from the lowest price on. */
export const freeOffers = ({ template, gpu }: Wanted) =>
  infiniteQueryOptions({
    queryKey: ['offers', 'ranked', template ?? '', gpu ?? ''],
    queryFn: ({ pageParam, signal }) => {
      const query = {
        limit: ROWS,
        ...(pageParam === undefined ? {} : { cursor: pageParam }),
        ...(template === undefined ? {} : { template_id: template }),
        ...(gpu === undefined ? {} : { gpu_model: gpu }),
      };
      return api.get('/v1/offers', { params: { query }, signal });
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
    placeholderData: keepPreviousData,
    ...LIVE,
  });

/** How many offers there are of each GPU model, the most common first. */
export const gpuModels = queryOptions({
  queryKey: ['offers', 'counts'],
  queryFn: async ({ signal }) => (await api.get('/v1/offers/counts', { signal })).gpu_models,
  ...LIVE,
});
