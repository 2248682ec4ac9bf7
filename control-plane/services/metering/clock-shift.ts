import { query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { UNREPORTED, UNSETTLED } from './meters.js';

/**
 * Moves times that are not settled yet by `ms`, the size of a clock step, so that their durations stay the same. Settled times stay
 * as they are.
 */
export function shiftUnsettledTimes(tx: Tx, ms: number): void {
  const shifted = (column: string) => sql<number>`${sql.ref(column)} + ${ms}`;
  const live = query.selectFrom('instances').select('id').where('status', '<>', sql.lit('destroyed'));
  const intervals = query.updateTable('meter_intervals').where('instance_id', 'in', live);
  const times = { opened_at: shifted('opened_at'), closed_at: shifted('closed_at') };
  const known = { attested_to: shifted('attested_to'), settled_to: shifted('settled_to') };
  tx.run(intervals.set({ ...times, ...known }).where((eb) => eb.or([UNSETTLED, UNREPORTED])));
  tx.run(intervals.set({ run_began_at: shifted('run_began_at'), run_not_before: shifted('run_not_before') }));
  const window = { charge_from: shifted('charge_from'), charge_to: shifted('charge_to') };
  const floor = { run_not_before: shifted('run_not_before') };
  const held = { release_gpus_at: shifted('release_gpus_at'), max_charge_from: shifted('max_charge_from') };
  tx.run(
    query
      .updateTable('instances')
      .set({ ...window, ...floor, ...held })
      .where('status', '<>', sql.lit('destroyed')),
  );
  tx.run(query.updateTable('spend_caps').set({ from_at: shifted('from_at') }));
  const earlier = { from_at: shifted('from_at'), until_at: shifted('until_at') };
  tx.run(query.updateTable('earlier_limits').set(earlier));
  tx.run(query.updateTable('recent_entries').set({ at: shifted('at') }));
  tx.run(
    query
      .updateTable('organizations')
      .set({ exhausted_since: shifted('exhausted_since') })
      .where('exhausted_since', 'is not', null),
  );
  tx.run(
    query
      .updateTable('organizations')
      .set({ disks_kept_until: shifted('disks_kept_until'), suspension_look_at: tx.now })
      .where('suspension_look_at', 'is not', null),
  );
  tx.run(query.updateTable('organizations').set({ settle_at: tx.now }).where('settle_at', 'is not', null));
}

/** Restarts the time until automatic destruction for organizations at or below zero, because meanwhile they could not pay. */
export function restartExhaustionClocks(tx: Tx): void {
  tx.run(query.updateTable('organizations').set({ exhausted_since: tx.now }).where('exhausted_since', 'is not', null));
}

/** Forgets before when no run can have begun, where that time may be later than the start of a run by now. */
export function forgetRunFloors(tx: Tx): void {
  const live = query.selectFrom('instances').select('id').where('status', '<>', sql.lit('destroyed'));
  tx.run(query.updateTable('meter_intervals').set({ run_not_before: null }).where('instance_id', 'in', live));
  tx.run(query.updateTable('instances').set({ run_not_before: null }).where('status', '<>', sql.lit('destroyed')));
}
