import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Instance } from '../instances/queries.js';
import { NO_ERROR, amend } from '../instances/transitions.js';
import { recordEvent } from '../system/timeline.js';

const LOST =
  'the machine was declared lost, and the disk with it: nothing is charged for it any more; should the machine come back with it, the instance can be started again';
const REMOVED =
  'the machine was removed, and the disk with it: nothing is charged for it any more; destroy the instance and deploy again';
const BACK = 'the machine is back, and the disk with it: the instance can be started, and its disk is charged again';
const NOT_BACK = 'the machine came back without the disk; destroy the instance and deploy again';

/** Tells whoever has stopped instances on a machine that is declared lost, or removed, that their disks went with it. */
export function tellDisksGone(tx: Tx, machineId: string, why: 'lost' | 'removed'): void {
  for (const instance of stoppedOn(tx, machineId)) mark(tx, instance, why === 'lost' ? LOST : REMOVED);
}

/** Once a machine that was declared lost has come back and said which disks it holds. */
export function tellDisksBack(tx: Tx, machineId: string, held: ReadonlySet<string>): void {
  for (const instance of stoppedOn(tx, machineId)) {
    if (instance.error_code !== 'disk_gone') continue;
    if (!held.has(instance.id)) {
      if (instance.error_message !== NOT_BACK) mark(tx, instance, NOT_BACK);
    } else {
      recordEvent(tx, instance.id, 'disk_back', BACK);
      amend(tx, instance, NO_ERROR);
    }
  }
}

function mark(tx: Tx, instance: Instance, message: string): void {
  recordEvent(tx, instance.id, 'disk_gone', message);
  amend(tx, instance, { error_code: 'disk_gone', error_message: message });
}

function stoppedOn(tx: Tx, machineId: string): Instance[] {
  const instances = query.selectFrom('instances').selectAll().where('machine_id', '=', machineId);
  return tx.all(instances.where('status', '=', 'stopped'));
}
