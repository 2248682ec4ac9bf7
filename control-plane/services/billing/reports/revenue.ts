import { query } from '../../../store/sql.js';
import { pageOf, type Order, type Page, type PageRequest } from '../../system/pages.js';
import type { Core } from '../../system/platform.js';
import { DAY_MS } from '../../../../shared/time.js';

export interface RevenueRequest extends PageRequest {
  days: number;
  machine_id?: string;
}

export interface MachineDay {
  id: number;
  machine_id: string;
  machine_name: string;
  /** UTC days since 1970. */
  day: number;
  gpu_micro: number;
  disk_micro: number;
}

/**
 * Lists, for an operator, the charges by machine and UTC day of use, over the last `days` days, newest first. Days without charges
 * are left out.
 */
export function listRevenue(core: Core, request: RevenueRequest): Page<MachineDay> {
  return core.store.transact((tx) => {
    const first = Math.floor(tx.now / DAY_MS) - request.days + 1;
    return pageOf(tx, revenueOf(first, request), request, REVENUE_ORDER);
  });
}

/** The order of the index that the query uses. */
export const REVENUE_ORDER: Order<MachineDay> = {
  by: { day: 'desc', id: 'desc' },
  keyOf: ({ day, id }) => [day, id],
};

export function revenueOf(first: number, { machine_id }: Pick<RevenueRequest, 'machine_id'>) {
  const rows = query
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
    .where('day', '>=', first);
  return machine_id === undefined ? rows : rows.where('machine_id', '=', machine_id);
}
