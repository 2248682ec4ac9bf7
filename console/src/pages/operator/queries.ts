import { queryOptions } from '@tanstack/react-query';
import { api } from '../../data/api.js';
import type { Situation } from './needs.js';
import type { Revenue } from './models.js';

/** What an act of an operator makes old: everything that these pages show. */
export const OPERATED = [['operator']] as const;

/** The stream of the organization's events does not tell of machines and other organizations. */
export const LOOK_AGAIN_MS = 10_000;
const OVERVIEW_MS = 30_000;
const PAGE = 500;
/** At most so many pages are read at a time: an overview says when there is more. */
const MOST_PAGES = 4;
const DAYS = 7;

interface Asked {
  limit: number;
  cursor?: string;
}

/** Reads a list page by page, as far as it is read at all. */
async function readMany<Item>(read: (query: Asked) => Promise<{ items: Item[]; next_cursor?: string | null }>) {
  const items: Item[] = [];
  let cursor: string | null | undefined;
  for (let count = 0; count < MOST_PAGES; count++) {
    const page = await read({ limit: PAGE, ...(typeof cursor === 'string' ? { cursor } : {}) });
    items.push(...page.items);
    cursor = page.next_cursor;
    if (cursor === null || cursor === undefined) return { items, isAll: true };
  }
  return { items, isAll: false };
}

/** What the overview shows. `isAll`: whether it has read everything. */
export const overview = queryOptions({
  queryKey: ['operator', 'overview'],
  queryFn: async ({ signal }): Promise<Situation & { isAll: boolean }> => {
    const first = { query: { limit: PAGE } };
    const [machines, organizations, quarantine, waiting, workers, ignoredStops, clock] = await Promise.all([
      readMany((query) => api.get('/v1/operator/machines', { params: { query }, signal })),
      readMany((query) => api.get('/v1/operator/organizations', { params: { query }, signal })),
      api.get('/v1/operator/quarantine', { params: first, signal }),
      api.get('/v1/operator/instances', { params: { query: { limit: PAGE, waiting: true } }, signal }),
      api.get('/v1/operator/workers', { signal }),
      api.get('/v1/operator/ignored-stops', { params: first, signal }),
      api.get('/v1/operator/clock', { signal }),
    ]);
    return {
      ...{ machines: machines.items, organizations: organizations.items, quarantine: quarantine.items, clock },
      ...{ waiting: waiting.items, workers: workers.items, ignoredStops: ignoredStops.items },
      isAll: [machines, organizations].every(({ isAll }) => isAll) && [quarantine, waiting].every(isLast),
    };
  },
  // Who opens the page asks what is so now.
  staleTime: 0,
  refetchInterval: OVERVIEW_MS,
});

function isLast({ next_cursor }: { next_cursor?: string | null }): boolean {
  return next_cursor === null || next_cursor === undefined;
}

/** What was charged on each day, newest first, in micro-dollars. */
export const revenue = queryOptions({
  queryKey: ['operator', 'revenue'],
  queryFn: async ({ signal }) => {
    const read = (query: Asked) =>
      api.get('/v1/operator/revenue', { params: { query: { days: DAYS, ...query } }, signal });
    const { items, isAll } = await readMany<Revenue>(read);
    const days = sumByDay(items);
    // Of the oldest day not all machines were read.
    return isAll ? days : days.slice(0, -1);
  },
  refetchInterval: OVERVIEW_MS,
});

function sumByDay(rows: readonly Revenue[]) {
  const days = new Map<string, { date: string; gpu_micro: number; disk_micro: number }>();
  for (const { date, gpu_micro, disk_micro } of rows) {
    const day = days.get(date) ?? { date, gpu_micro: 0, disk_micro: 0 };
    days.set(date, { date, gpu_micro: day.gpu_micro + gpu_micro, disk_micro: day.disk_micro + disk_micro });
  }
  return [...days.values()];
}

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
