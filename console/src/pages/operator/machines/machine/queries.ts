import { queryOptions } from '@tanstack/react-query';
import { api } from '../../../../data/api.js';
import { LOOK_AGAIN_MS } from '../../queries.js';

/** What the instances of a machine have used in the last hour, minute by minute. */
export const usageOn = (id: string) =>
  queryOptions({
    queryKey: ['operator', 'usage', id],
    queryFn: async ({ signal }) =>
      (
        await api.get('/v1/operator/machines/{id}/usage', {
          params: { path: { id }, query: { window: '1h' } },
          signal,
        })
      ).instances,
    refetchInterval: LOOK_AGAIN_MS,
  });
