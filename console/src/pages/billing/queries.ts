import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import type { components } from '../../../../client/api/index.js';
import { api } from '../../data/api/api.js';
import { inPages } from '../../data/api/pages.js';
import type { Group, Kind } from './search.js';
import { sumOf } from './sums.js';

export type DailySpend = components['schemas']['DailySpend'];
export type ChargeSum = components['schemas']['ChargeSum'];

/** Charges are posted without an event of their own. */
const AGAIN_MS = 60_000;

/** The days that the overview shows, including today. */
export const DAYS = 30;

export const dailySpend = queryOptions({
  queryKey: ['billing', 'days', DAYS],
  queryFn: async ({ signal }) =>
    (await api.get('/v1/billing/spend-daily', { params: { query: { days: DAYS } }, signal })).items,
  refetchInterval: AGAIN_MS,
});

export const spendCaps = queryOptions({
  queryKey: ['spend-caps', 'organization'],
  queryFn: ({ signal }) => api.get('/v1/orgs/current/spend-caps', { signal }),
  refetchInterval: AGAIN_MS,
});

export interface SpendFilter {
  by: Group;
  from?: string;
  to?: string;
}

/** The sums of a range of days, and by what they are added up: the sums of before are shown until those of another choice are read. */
export const chargeSums = (filter: SpendFilter) =>
  inPages(['billing', 'sums', filter], async (page, signal) => {
    const sums = await api.get('/v1/billing/summary', { params: { query: { ...filter, ...page } }, signal });
    return { ...sums, by: filter.by };
  });

/** What all use in a range of days has cost: the sum of its days, of which there are 366 at most. */
export const chargeTotal = ({ by: _, ...range }: SpendFilter) =>
  queryOptions({
    queryKey: ['billing', 'total', range],
    queryFn: async ({ signal }) =>
      sumOf((await api.get('/v1/billing/summary', { params: { query: { ...range, by: 'day' } }, signal })).items),
  });

export interface LedgerFilter {
  kind?: Kind;
  instance_id?: string;
}

const PAGE = 50;

/** A page of the transactions, newest first. */
export const transactions = (filter: LedgerFilter, cursor: string | undefined) =>
  queryOptions({
    queryKey: ['billing', 'transactions', filter, cursor ?? ''],
    queryFn: ({ signal }) =>
      api.get('/v1/billing/transactions', {
        params: { query: { ...filter, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) } },
        signal,
      }),
    placeholderData: keepPreviousData,
  });

/** Reads the same sums or transactions as a CSV file. */
export const csv = {
  sums: (filter: SpendFilter) =>
    blobOf(api.get('/v1/billing/summary.csv', { params: { query: { ...filter } }, parseAs: 'blob' })),
  transactions: (filter: LedgerFilter) =>
    blobOf(api.get('/v1/billing/transactions.csv', { params: { query: { ...filter } }, parseAs: 'blob' })),
};

/** The client types what is JSON only. */
function blobOf(answer: Promise<unknown>): Promise<Blob> {
  return answer as Promise<Blob>;
}
