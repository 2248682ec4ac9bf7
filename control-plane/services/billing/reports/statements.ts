import { DAY_MS } from '../../../../shared/time.js';
import type { Caller } from '../../../domain/caller.js';
import type { TransactionKind } from '../../../domain/money/money.js';
import type { Row } from '../../../store/schema.js';
import { query, sql } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { getOrganization } from '../../organizations/organizations.js';
import { pageFrom, pageOf, type Order, type ListOrPage, type Page, type PageRequest } from '../../system/pages.js';
import type { Core } from '../../system/platform.js';

export type TransactionDetails = Row<'transactions'> & { position: number };

/** Lists the ledger of any organization for an operator, like {@link listTransactions}. Refuses with ORGANIZATION_NOT_FOUND. */
export function listTransactionsOf(
  core: Core,
  organizationId: string,
  request: TransactionRequest,
): Page<TransactionDetails> {
  core.store.transact((tx) => getOrganization(tx, organizationId));
  return listTransactions(core, { organizationId }, request);
}

export interface TransactionRequest extends PageRequest {
  instance_id?: string;
  kind?: TransactionKind;
}

/** Lists an organization's ledger, newest entry first. The charges of an instance add up to its `spend_micro`. */
export function listTransactions(
  core: Core,
  { organizationId }: Pick<Caller, 'organizationId'>,
  request: TransactionRequest,
): Page<TransactionDetails> {
  return core.store.transact((tx) => pageOf(tx, transactionsOf(organizationId, request), request, LEDGER_ORDER));
}

/** The order of the index that the query uses. */
export const LEDGER_ORDER: Order<TransactionDetails> = { by: { rowid: 'desc' }, keyOf: ({ position }) => [position] };

export function transactionsOf(organizationId: string, { instance_id, kind }: TransactionRequest) {
  let rows = query
    .selectFrom('transactions')
    .selectAll()
    .select(sql<number>`rowid`.as('position'))
    .where('organization_id', '=', organizationId);
  if (instance_id !== undefined) rows = rows.where('instance_id', '=', instance_id);
  if (kind !== undefined) rows = rows.where('kind', '=', kind);
  return rows;
}

export interface DailySpend {
  /** `YYYY-MM-DD`, UTC */
  date: string;
  gpu_micro: number;
  disk_micro: number;
}

/**
 * Returns the charges for the use of each of the last `days` UTC days, without gaps; the last is today. Usage that is reported late
 * adds to the day of the use.
 */
export function spendDaily(
  core: Core,
  caller: Caller,
  { days, ...request }: PageRequest & { days: number },
): ListOrPage<DailySpend> {
  const spent = core.store.transact((tx) => spentIn(tx, caller.organizationId, days));
  return pageFrom(spent, request, { by: { date: 'asc' }, keyOf: ({ date }) => [date] });
}

function spentIn(tx: Tx, organizationId: string, days: number): DailySpend[] {
  const first = Math.floor(tx.now / DAY_MS) - days + 1;
  const charged = new Map(tx.all(daysOf(organizationId, first)).map((row) => [row.day, row]));
  return Array.from({ length: days }, (_, index) => {
    const { gpu_micro = 0, disk_micro = 0 } = charged.get(first + index) ?? {};
    return { date: dateOf(first + index), gpu_micro, disk_micro };
  });
}

export function daysOf(organizationId: string, first: number) {
  const days = query.selectFrom('organization_days').selectAll().where('organization_id', '=', organizationId);
  return days.where('day', '>=', first);
}

/** Formats UTC days since 1970 as `YYYY-MM-DD`. */
export function dateOf(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}
