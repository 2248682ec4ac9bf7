import { queryOptions } from '@tanstack/react-query';
import { api } from '../../data/api/api.js';

/** What an act of an operator makes old: everything that these pages show. */
export const OPERATED = [['operator']] as const;

/** The stream of the organization's events does not tell of machines and other organizations. */
export const LOOK_AGAIN_MS = 10_000;
const OVERVIEW_MS = 30_000;
const PAGE = 500;
/** So many of the newest machines are offered to choose from. */
export const MOST_MACHINES = PAGE;

/** What needs an act, and how many machines and GPUs are what. */
export const overview = queryOptions({
  queryKey: ['operator', 'overview'],
  queryFn: ({ signal }) => api.get('/v1/operator/overview', { signal }),
  // Who opens the page asks what is so now.
  staleTime: 0,
  refetchInterval: OVERVIEW_MS,
});

/** What was charged on each of the last 30 days, as the API says it and as a chart draws it. */
export const revenue = queryOptions({
  queryKey: ['operator', 'revenue'],
  queryFn: async ({ signal }) => {
    const { days, models } = await api.get('/v1/operator/revenue-daily', { signal });
    const lines = [
      { name: 'All', values: days.map(({ gpu_micro, disk_micro }) => gpu_micro + disk_micro) },
      { name: 'GPU time', values: days.map(({ gpu_micro }) => gpu_micro) },
      { name: 'Disks', values: days.map(({ disk_micro }) => disk_micro) },
    ];
    return { days, models, lines, at: days.map(({ date }) => `${date}T00:00:00.000Z`) };
  },
  refetchInterval: OVERVIEW_MS,
});

export const machine = (id: string) =>
  queryOptions({
    queryKey: ['operator', 'machine', id],
    queryFn: ({ signal }) => api.get('/v1/operator/machines/{id}', { params: { path: { id } }, signal }),
    refetchInterval: LOOK_AGAIN_MS,
  });

/** The instances that can hold GPUs of a machine. */
export const instancesOn = (machine_id: string) =>
  queryOptions({
    queryKey: ['operator', 'instances', 'holding', machine_id],
    queryFn: async ({ signal }) =>
      (await api.get('/v1/operator/instances', { params: { query: { machine_id, limit: PAGE } }, signal })).items,
    refetchInterval: LOOK_AGAIN_MS,
  });

/** The newest machines, to choose one of them. */
export const newestMachines = queryOptions({
  queryKey: ['operator', 'machines', 'newest'],
  queryFn: async ({ signal }) =>
    (await api.get('/v1/operator/machines', { params: { query: { limit: PAGE } }, signal })).items,
});

export const operatedOrganization = (id: string) =>
  queryOptions({
    queryKey: ['operator', 'organization', id],
    queryFn: ({ signal }) => api.get('/v1/operator/organizations/{id}', { params: { path: { id } }, signal }),
    refetchInterval: LOOK_AGAIN_MS,
  });
