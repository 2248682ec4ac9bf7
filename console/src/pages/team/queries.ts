import { queryOptions } from '@tanstack/react-query';
import { api } from '../../data/api/api.js';
import { inPages } from '../../data/api/pages.js';

export const members = inPages(['members'], (page, signal) =>
  api.get('/v1/orgs/current/members', { params: { query: page }, signal }),
);

export const invites = queryOptions({
  queryKey: ['invites'],
  queryFn: async ({ signal }) => (await api.get('/v1/orgs/current/invites', { signal })).items,
});

/** Whether the organization demands a second factor of its members. */
export const factorRequirement = queryOptions({
  queryKey: ['organization', 'second-factor'],
  queryFn: ({ signal }) => api.get('/v1/orgs/current/second-factor', { signal }),
});
