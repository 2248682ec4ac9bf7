import { queryOptions } from '@tanstack/react-query';
import { api } from '../../../../data/api/api.js';
import { LOOK_AGAIN_MS } from '../../queries.js';

/** With today; each has at most one row of the revenue of a machine. */
export const EARNED_DAYS = 30;
const EARNED_MS = 60_000;

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

/** What was charged for a machine in micro-dollars, on how many of the last days, and the latest of these. */
export const earnedBy = (machine_id: string) =>
  queryOptions({
    queryKey: ['operator', 'earned', machine_id],
    queryFn: async ({ signal }) => {
      const query = { machine_id, days: EARNED_DAYS, limit: EARNED_DAYS };
      const { items } = await api.get('/v1/operator/revenue', { params: { query }, signal });
      const micro = items.reduce((sum, { gpu_micro, disk_micro }) => sum + gpu_micro + disk_micro, 0);
      return { last: items[0], days: items.length, micro };
    },
    refetchInterval: EARNED_MS,
  });
