import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { UNSETTLED, endInterval, openMeter, settleSoon, type IntervalRow } from './meters.js';

/**
 * Meters the disks of stopped instances by the list of workloads that a host reports. A disk is metered while its host has it. A
 * missing disk is not charged after its last settlement.
 */
export function meterDisks(tx: Tx, machineId: string, held: ReadonlySet<string>): void {
  for (const interval of unsettledOn(tx, machineId)) {
    if (!held.has(interval.instance_id)) endInterval(tx, interval, interval.settled_to);
    settleSoon(tx, interval.organization_id);
  }
  for (const instance of tx.all(stoppedInstances({ machineId }))) {
    if (!held.has(instance.id)) continue;
    openMeter(tx, instance, 'disk');
    settleSoon(tx, instance.organization_id);
  }
}

/** Pauses the disk meters of a machine at `at`, because its host is silent. The next hello resumes those of the disks that it lists. */
export function pauseDisks(tx: Tx, machineId: string, at: number): void {
  setPaused(tx, machineId);
  for (const interval of unsettledOn(tx, machineId)) {
    if (interval.closed_at === null) endInterval(tx, interval, at);
    settleSoon(tx, interval.organization_id);
  }
}

/**
 * Ends the disk meters of a machine that is declared lost or removed: now, or at their last settlement, if the database was restored
 * or its host was not heard since a time in which the control plane could not hear it (`areKnown`).
 */
export function stopMeteringDisks(tx: Tx, machineId: string, areKnown: boolean): void {
  const machine = tx.get(query.selectFrom('machines').select('needs_resync').where('id', '=', machineId));
  const isCertain = areKnown && !machine?.needs_resync;
  setPaused(tx, machineId);
  for (const interval of unsettledOn(tx, machineId)) {
    endInterval(tx, interval, isCertain ? (interval.closed_at ?? tx.now) : interval.settled_to);
    settleSoon(tx, interval.organization_id);
  }
}

/** Lets the organizations that pay for disks on a machine be settled at once. */
export function settleDisksSoon(tx: Tx, machineId: string): void {
  for (const { organization_id } of unsettledOn(tx, machineId)) settleSoon(tx, organization_id);
}

function setPaused(tx: Tx, machineId: string): void {
  tx.run(query.updateTable('machines').set({ disks_paused: 1, silent_ms: 0 }).where('id', '=', machineId));
}

function unsettledOn(tx: Tx, machineId: string): IntervalRow[] {
  return tx.all(unsettledDisks({ machineId }));
}

const unsettledDisks = compileOnce(({ machineId }: { machineId: string }) =>
  query
    .selectFrom('meter_intervals')
    .selectAll()
    .where('machine_id', '=', machineId)
    .where('meter', '=', sql.lit('disk'))
    .where(UNSETTLED),
);

const stoppedInstances = compileOnce(({ machineId }: { machineId: string }) =>
  query
    .selectFrom('instances')
    .select(['id', 'organization_id', 'machine_id', 'status', 'api_key_id', 'run_key_id'])
    .where('machine_id', '=', machineId)
    .where('status', '<>', sql.lit('destroyed'))
    .where('status', '=', sql.lit('stopped')),
);
