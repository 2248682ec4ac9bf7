import { queryOptions } from '@tanstack/react-query';
import { api } from '../../data/api/api.js';

/** An endpoint fails and recovers without an event. */
const ENDPOINT_MS = 30_000;

export const endpoints = queryOptions({
  queryKey: ['webhooks'],
  queryFn: async ({ signal }) => (await api.get('/v1/webhook-endpoints', { signal })).items,
  refetchInterval: ENDPOINT_MS,
});

export const endpoint = (id: string) =>
  queryOptions({
    queryKey: ['webhooks', id],
    queryFn: ({ signal }) => api.get('/v1/webhook-endpoints/{id}', { params: { path: { id } }, signal }),
    refetchInterval: ENDPOINT_MS,
  });
