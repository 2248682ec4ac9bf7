import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { endInterval, openInterval, openMeter, settleSoon, type MeteredInstance } from './meters.js';

/**
 * Meters the disks of stopped instances by the list of workloads that a host reports. A disk is metered while its host has it. A
 * missing disk is not charged after its last settlement.
 */
export function meterDisks(tx: Tx, machineId: string, held: ReadonlySet<string>): void {
  for (const instance of stoppedOn(tx, machineId)) {
    if (held.has(instance.id)) openMeter(tx, instance, 'disk');
    else {
      const interval = openInterval(tx, instance.id);
      if (interval) endInterval(tx, interval, interval.settled_to);
    }
    settleSoon(tx, instance.organization_id);
  }
}

/**
 * Ends the disk meters of a machine that is declared lost or removed. If the database was restored and the host has not said hello
 * since, they end at their last settlement instead of now.
 */
export function stopMeteringDisks(tx: Tx, machineId: string): void {
  const machine = tx.get(query.selectFrom('machines').select('needs_resync').where('id', '=', machineId));
  for (const { id, organization_id } of stoppedOn(tx, machineId)) {
    const interval = openInterval(tx, id);
    if (interval) endInterval(tx, interval, machine?.needs_resync ? interval.settled_to : tx.now);
    settleSoon(tx, organization_id);
  }
}

function stoppedOn(tx: Tx, machineId: string): MeteredInstance[] {
  return tx.all(stoppedInstances({ machineId }));
}

const stoppedInstances = compileOnce(({ machineId }: { machineId: string }) =>
  query
    .selectFrom('instances')
    .select(['id', 'organization_id', 'machine_id', 'status'])
    .where('machine_id', '=', machineId)
    .where('status', '<>', sql.lit('destroyed'))
    .where('status', '=', sql.lit('stopped')),
);
