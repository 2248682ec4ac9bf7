import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Instance } from '../instances/queries.js';
import { NO_ERROR, amend } from '../instances/transitions.js';
import { recordNote } from '../events/timeline.js';

const LOST =
  'the machine was declared lost, and the disk with it: the disk is no longer charged; if the machine comes back with the disk, the instance can be started again';
const REMOVED =
  'the machine was removed, and the disk with it: the disk is no longer charged; destroy the instance and deploy again';
const BACK = 'the machine is back, and the disk with it: the instance can be started, and its disk is charged again';
const NOT_BACK = 'the machine came back without the disk; destroy the instance and deploy again';

/** Tells the renters of stopped instances on a machine that is declared lost or removed that their disks are gone. */
export function tellDisksGone(tx: Tx, machineId: string, why: 'lost' | 'removed'): void {
  for (const instance of stoppedOn(tx, machineId)) mark(tx, instance, why === 'lost' ? LOST : REMOVED);
}

/**
 * Tells renters, after a lost machine has come back, whether their disks are there. `held` has the ids of the instances whose
 * workloads the host reports.
 */
export function tellDisksBack(tx: Tx, machineId: string, held: ReadonlySet<string>): void {
  for (const instance of stoppedOn(tx, machineId)) {
    if (instance.error_code !== 'disk_gone') continue;
    if (!held.has(instance.id)) {
      if (instance.error_message !== NOT_BACK) mark(tx, instance, NOT_BACK);
    } else {
      recordNote(tx, instance.id, 'disk_back', BACK);
      amend(tx, instance, NO_ERROR);
    }
  }
}

function mark(tx: Tx, instance: Instance, message: string): void {
  recordNote(tx, instance.id, 'disk_gone', message);
  amend(tx, instance, { error_code: 'disk_gone', error_message: message });
}

function stoppedOn(tx: Tx, machineId: string): Instance[] {
  return tx.all(stoppedInstances({ machineId }));
}

const stoppedInstances = compileOnce(({ machineId }: { machineId: string }) => {
  const instances = query.selectFrom('instances').selectAll().where('machine_id', '=', machineId);
  return instances.where('status', '=', sql.lit('stopped')).where('status', '<>', sql.lit('destroyed'));
});
