import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { endInterval, openInterval, openMeter, settleSoon, type MeteredInstance } from './meters.js';

/**
 * A host has said which workloads it holds. Disk of a stopped instance is metered while its host has it: what is not there is
 * not charged for from where it was last settled.
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
 * The disks of a machine that is declared lost, or removed, cost nothing from now on; where the store was restored and the host
 * has not been heard since, from where they were last settled.
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
  return tx.all(
    query
      .selectFrom('instances')
      .select(['id', 'organization_id', 'machine_id', 'status'])
      .where('machine_id', '=', machineId)
      .where('status', '=', 'stopped'),
  );
}
