import { queryOptions } from '@tanstack/react-query';
import { api } from '../../data/api/api.js';

/** When a session was last used changes without an event. */
const SESSIONS_MS = 30_000;

export const sessions = queryOptions({
  queryKey: ['sessions'],
  queryFn: async ({ signal }) => (await api.get('/v1/auth/sessions', { signal })).items,
  refetchInterval: SESSIONS_MS,
});

export const secondFactors = queryOptions({
  queryKey: ['second-factors'],
  queryFn: ({ signal }) => api.get('/v1/me/second-factors', { signal }),
});

export const linkedAccounts = queryOptions({
  queryKey: ['identities'],
  queryFn: async ({ signal }) => (await api.get('/v1/me/identities', { signal })).items,
});
