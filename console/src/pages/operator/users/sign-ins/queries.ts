import { queryOptions } from '@tanstack/react-query';
import { api } from '../../../../data/api/api.js';
import { LOOK_AGAIN_MS } from '../../queries.js';

/** An installation has no more. */
const MOST = 100;

/** The sign-ins of companies, newest first. */
export const signIns = queryOptions({
  queryKey: ['operator', 'issuers'],
  queryFn: async ({ signal }) =>
    (await api.get('/v1/operator/issuers', { params: { query: { limit: MOST } }, signal })).items,
  refetchInterval: LOOK_AGAIN_MS,
});
