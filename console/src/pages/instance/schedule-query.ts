import { queryOptions } from '@tanstack/react-query';
import { api } from '../../data/api/api.js';

/** The schedule of an instance, and what it does next. */
export const scheduleOf = (id: string) =>
  queryOptions({
    queryKey: ['instance', id, 'schedule'],
    queryFn: ({ signal }) => api.get('/v1/instances/{id}/schedule', { params: { path: { id } }, signal }),
  });
