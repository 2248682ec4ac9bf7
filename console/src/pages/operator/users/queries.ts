import { queryOptions } from '@tanstack/react-query';
import { api } from '../../../data/api/api.js';
import { LOOK_AGAIN_MS } from '../queries.js';

/** The user who signs in with an address; null: nobody does. */
export const userWith = (email: string) =>
  queryOptions({
    queryKey: ['operator', 'users', email],
    queryFn: async ({ signal }) =>
      (await api.get('/v1/operator/users', { params: { query: { email } }, signal })).items[0] ?? null,
    refetchInterval: LOOK_AGAIN_MS,
  });
