import { queryOptions } from '@tanstack/react-query';
import type { components, paths } from '../../../../client/api/index.js';
import { api } from '../../data/api/api.js';

export type ApiKey = components['schemas']['ApiKey'];
export type NewApiKey = paths['/v1/api-keys']['post']['requestBody']['content']['application/json'];
/** A new key with its secret, which no later answer contains. */
export type MadeKey = paths['/v1/api-keys']['post']['responses'][201]['content']['application/json'];

export const apiKeys = queryOptions({
  queryKey: ['api-keys'],
  queryFn: async ({ signal }) => (await api.get('/v1/api-keys', { signal })).items,
});

/** What an API key may spend, and has spent. */
export const keyCaps = (id: string) =>
  queryOptions({
    queryKey: ['spend-caps', 'api-key', id],
    queryFn: ({ signal }) => api.get('/v1/api-keys/{id}/spend-caps', { params: { path: { id } }, signal }),
  });
