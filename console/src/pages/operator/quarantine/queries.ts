import { queryOptions } from '@tanstack/react-query';
import { api } from '../../../data/api/api.js';

const MOST = 500;

/** The templates that an instance of an organization can show: those of the operator, and its own. */
export const templatesFor = (organizationId: string | undefined) =>
  queryOptions({
    queryKey: ['operator', 'templates', 'for', organizationId ?? ''],
    queryFn: async ({ signal }) => {
      const query = { limit: MOST };
      const system = api.get('/v1/operator/templates', { params: { query }, signal });
      if (organizationId === undefined) return (await system).items;
      const path = { id: organizationId };
      const own = api.get('/v1/operator/organizations/{id}/templates', { params: { path, query }, signal });
      return (await Promise.all([own, system])).flatMap(({ items }) => items as { id: string; name: string }[]);
    },
  });

/** The offers of a machine, withdrawn or not: the terms of each can apply to what runs there. */
export const offersOf = (machine_id: string) =>
  queryOptions({
    queryKey: ['operator', 'offers', 'of', machine_id, 'all'],
    queryFn: async ({ signal }) =>
      (await api.get('/v1/operator/offers', { params: { query: { machine_id, limit: MOST } }, signal })).items,
  });
