import type { Caller } from '../../domain/caller.js';
import type { TransactionKind } from '../../domain/money.js';
import type { Row } from '../../store/schema.js';
import { query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { pageFrom, pageOf, type Page, type PageRequest } from '../pages.js';
import type { Platform } from '../platform.js';

const DAY_MS = 24 * 60 * 60 * 1000;

export type TransactionDetails = Row<'transactions'> & { position: number };

/** What moved the organisation's balance, newest first; the charges of an instance sum to its `spend_micro`. */
export function listTransactions(
  platform: Platform,
  caller: Caller,
  request: PageRequest & { instance_id?: string; kind?: TransactionKind },
): Page<TransactionDetails> {
  return platform.store.transact((tx) => {
    let rows = query
      .selectFrom('transactions')
      .selectAll()
      .select(sql<number>`rowid`.as('position'))
      .where('organization_id', '=', caller.organizationId);
    if (request.instance_id !== undefined) rows = rows.where('instance_id', '=', request.instance_id);
    if (request.kind !== undefined) rows = rows.where('kind', '=', request.kind);
    return pageOf(tx, rows, request, { by: { rowid: 'desc' }, keyOf: ({ position }) => [position] });
  });
}

export interface DailySpend {
  /** `YYYY-MM-DD`, UTC */
  date: string;
  gpu_micro: number;
  disk_micro: number;
}

/** What was charged on each of the last `days` UTC days, today included and last, without gaps. */
export function spendDaily(
  platform: Platform,
  caller: Caller,
  { days, ...request }: PageRequest & { days: number },
): Page<DailySpend> {
  const spent = platform.store.transact((tx) => spentIn(tx, caller, days));
  return pageFrom(spent, request, { by: { date: 'asc' }, keyOf: ({ date }) => [date] });
}

function spentIn(tx: Tx, caller: Caller, days: number): DailySpend[] {
  const today = Math.floor(tx.now / DAY_MS);
  const first = today - days + 1;
  const day = sql<number>`hour / ${sql.lit(DAY_MS)}`;
  const rows = tx.all(
    query
      .selectFrom('transactions')
      .select(['meter', day.as('day'), (eb) => eb.fn.sum<number>('amount_micro').as('amount_micro')])
      .where('organization_id', '=', caller.organizationId)
      .where('kind', '=', 'charge')
      .where('hour', '>=', first * DAY_MS)
      .groupBy(['meter', 'day']),
  );
  const charged = new Map(rows.map((row) => [`${row.day} ${row.meter}`, -row.amount_micro]));
  return Array.from({ length: days }, (_, index) => ({
    date: new Date((first + index) * DAY_MS).toISOString().slice(0, 10),
    gpu_micro: charged.get(`${first + index} gpu`) ?? 0,
    disk_micro: charged.get(`${first + index} disk`) ?? 0,
  }));
}
