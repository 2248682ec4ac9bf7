import { queryOptions } from '@tanstack/react-query';
import { api } from '../../../data/api/api.js';
import { LOOK_AGAIN_MS } from '../queries.js';

export const controlPlane = queryOptions({
  queryKey: ['operator', 'control-plane'],
  queryFn: ({ signal }) => api.get('/v1/operator/control-plane', { signal }),
  refetchInterval: LOOK_AGAIN_MS,
});

export const clock = queryOptions({
  queryKey: ['operator', 'clock'],
  queryFn: ({ signal }) => api.get('/v1/operator/clock', { signal }),
  refetchInterval: LOOK_AGAIN_MS,
});

export const workers = queryOptions({
  queryKey: ['operator', 'workers'],
  queryFn: async ({ signal }) => (await api.get('/v1/operator/workers', { signal })).items,
  refetchInterval: LOOK_AGAIN_MS,
});

/** They change only when the control plane starts again. */
export const settings = queryOptions({
  queryKey: ['operator', 'settings'],
  queryFn: async ({ signal }) => (await api.get('/v1/operator/settings', { signal })).items,
});
