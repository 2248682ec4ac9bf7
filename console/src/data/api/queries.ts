import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api } from './api.js';
import { inPages } from './pages.js';
import { checkReader } from './reader.js';

/** What the shell and more than one page read. A page has its own queries beside it. `data/live.ts` says which event makes which one old. */

/** The balance falls without an event. */
const BALANCE_MS = 60_000;

export const me = queryOptions({
  queryKey: ['me'],
  queryFn: async ({ signal }) => checkReader(await api.get('/v1/me', { signal })),
  // Somebody else can have signed in in another tab.
  refetchOnWindowFocus: 'always',
});

export const organization = queryOptions({
  queryKey: ['organization'],
  queryFn: ({ signal }) => api.get('/v1/orgs/current', { signal }),
  refetchInterval: BALANCE_MS,
});

export const instances = queryOptions({
  queryKey: ['instances'],
  queryFn: async ({ signal }) => (await api.get('/v1/instances', { signal })).items,
  // What they have cost grows without an event.
  refetchInterval: BALANCE_MS,
});

/** Whether there is an instance. */
export const hasInstances = queryOptions({
  queryKey: ['instances', 'any'],
  queryFn: async ({ signal }) =>
    (await api.get('/v1/instances', { params: { query: { limit: 1 } }, signal })).items.length > 0,
});

/** All instances there ever were, newest first, page by page: the destroyed ones are among them. */
export const pastInstances = inPages(['instances', 'past'], (page, signal) =>
  api.get('/v1/instances', { params: { query: { ...page, include_destroyed: true } }, signal }),
);

export const instance = (id: string) =>
  queryOptions({
    queryKey: ['instance', id],
    queryFn: ({ signal }) => api.get('/v1/instances/{id}', { params: { path: { id } }, signal }),
    refetchInterval: BALANCE_MS,
  });

/** The newest events of an instance, newest first. */
export const timeline = (id: string, limit: number) =>
  queryOptions({
    queryKey: ['instance', id, 'events', limit],
    queryFn: async ({ signal }) =>
      (await api.get('/v1/instances/{id}/events', { params: { path: { id }, query: { limit } }, signal })).items,
    placeholderData: keepPreviousData,
  });

export const mailSettings = queryOptions({
  queryKey: ['mail-settings'],
  queryFn: ({ signal }) => api.get('/v1/me/mail', { signal }),
});

export const sshKeys = queryOptions({
  queryKey: ['ssh-keys'],
  queryFn: async ({ signal }) => (await api.get('/v1/ssh-keys', { signal })).items,
  // No event tells of a key, and one can be added in another window.
  refetchOnWindowFocus: 'always',
});
