import { DAY_MS } from '../../../../shared/time.js';
import { Remembered } from '../../../store/remembered.js';
import { compileOnce, query } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import type { Core } from '../../system/platform.js';

/** The charges for the use of all machines on a day. */
export interface RevenueDay {
  /** UTC days since 1970. */
  day: number;
  gpu_micro: number;
  disk_micro: number;
  /** How many machines were charged for. */
  machines: number;
}

const MOST_DAYS = 400;

export interface HasRevenueDays {
  revenueDays: Remembered<RevenueDay>;
}

/** Makes the sums of days, each remembered until a machine is charged for on that day: a day has a row for each machine. */
export function makeRevenueDays({ store }: Pick<Core, 'store'>): Remembered<RevenueDay> {
  const days = new Remembered(store, MOST_DAYS, (day) => store.transact((tx) => sumOf(tx, Number(day))));
  store.onChange('machine_days', (day) => days.forget(day));
  return days;
}

/** Returns today, in UTC days since 1970. */
export function today({ clock }: Pick<Core, 'clock'>): number {
  return Math.floor(clock.now() / DAY_MS);
}

/** Returns the sum of a day, given in UTC days since 1970. */
export function revenueOfDay({ revenueDays }: HasRevenueDays, day: number): RevenueDay {
  return revenueDays.of(String(day)) ?? { day, gpu_micro: 0, disk_micro: 0, machines: 0 };
}

function sumOf(tx: Tx, day: number): RevenueDay {
  const { gpu_micro = null, disk_micro = null, machines = 0 } = tx.get(sumOfDay({ day })) ?? {};
  return { day, gpu_micro: gpu_micro ?? 0, disk_micro: disk_micro ?? 0, machines };
}

const sumOfDay = compileOnce(({ day }: { day: number }) =>
  query
    .selectFrom('machine_days')
    .select(({ fn }) => [
      fn.sum<number | null>('gpu_micro').as('gpu_micro'),
      fn.sum<number | null>('disk_micro').as('disk_micro'),
      fn.countAll<number>().as('machines'),
    ])
    .where('day', '=', day),
);

/** Returns the charges for each machine on a day. */
export function machinesOfDay(tx: Tx, day: number) {
  const rows = query.selectFrom('machine_days').select(['machine_id', 'gpu_micro', 'disk_micro']);
  return tx.all(rows.where('day', '=', day));
}
