import { query, sql } from '../../store/sql.js';
import { pageOf, type Page, type PageRequest } from '../pages.js';
import type { Platform } from '../platform.js';
import { DAY_MS } from './billing.js';

/** A cursor is a day and, within it, a row. */
const ROWS_A_DAY = 2 ** 31;

export interface RevenueRequest extends PageRequest {
  days: number;
  machine_id?: string;
}

export interface MachineDay {
  id: number;
  machine_id: string;
  machine_name: string;
  /** Since 1970. */
  day: number;
  gpu_micro: number;
  disk_micro: number;
}

/** Operators: what was charged for the use of each machine on each of the last `days` UTC days, newest first, where anything was. */
export function listRevenue(platform: Platform, request: RevenueRequest): Page<MachineDay> {
  return platform.store.transact((tx) => {
    const first = Math.floor(tx.now / DAY_MS) - request.days + 1;
    return pageOf(tx, revenueOf(first, request), request, ({ day, id }) => day * ROWS_A_DAY + id);
  });
}

/** In the order in which the indexes have them. */
export function revenueOf(first: number, { machine_id, cursor }: Pick<RevenueRequest, 'machine_id' | 'cursor'>) {
  let rows = query
    .selectFrom('machine_days')
    .selectAll()
    .select((eb) =>
      eb
        .selectFrom('machines')
        .select('name')
        .whereRef('machines.id', '=', 'machine_id')
        .$asScalar()
        .$notNull()
        .as('machine_name'),
    )
    .where('day', '>=', first)
    .orderBy('day', 'desc')
    .orderBy('id', 'desc');
  if (machine_id !== undefined) rows = rows.where('machine_id', '=', machine_id);
  if (cursor === undefined) return rows;
  const [day, id] = [Math.floor(Number(cursor) / ROWS_A_DAY), Number(cursor) % ROWS_A_DAY];
  return rows.where('day', '<=', day).where(sql<boolean>`(day < ${day} OR id < ${id})`);
}
