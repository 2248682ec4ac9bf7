import type { InstanceErrorCode } from '../../domain/instance-codes.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { forEachInOwnTransaction } from '../system/for-each.js';
import { stopMeteringDisks } from '../metering/disks.js';
import { dropUnreported } from '../metering/meters.js';
import type { Platform } from '../system/platform.js';
import { recordCommand } from '../instances/commands.js';
import { findInstance, type Instance } from '../instances/queries.js';
import { considerRelease, undoStart } from '../instances/release.js';
import { NO_ERROR, closeChargeWindows, fail, transition } from '../instances/transitions.js';
import { recordEvent } from '../system/timeline.js';

const REASON = 'the machine was declared lost';

/**
 * What becomes of an instance whose machine is declared lost. Nothing of it is taken for gone: should the machine come back,
 * a clean-up waits for it, and until then GPUs stay claimed. What is stopped keeps its disk and refuses to start ({@link tellDisksGone}
 * tells of it); what is being destroyed is settled by {@link settleLostMachines}.
 */
export function loseInstance(tx: Tx, instance: Instance): void {
  switch (instance.status) {
    case 'creating':
      return endUnheard(tx, instance, 'provision_failed');
    case 'running':
      return endUnheard(tx, instance, 'workload_lost');
    case 'starting': {
      recordEvent(tx, instance.id, 'start_failed', REASON);
      return undoStart(tx, transition(tx, instance, 'stopped'));
    }
    case 'stopping':
      // Its stop stays open and lands when the machine comes back.
      recordEvent(tx, instance.id, 'stopped', REASON);
      considerRelease(tx, transition(tx, instance, 'stopped', NO_ERROR));
      return;
    default:
      return;
  }
}

function endUnheard(tx: Tx, instance: Instance, error_code: InstanceErrorCode): void {
  recordCommand(tx, fail(tx, instance, error_code, REASON), 'release');
}

/**
 * Writes off what the host of a lost machine has not told of: its renters hear that it is over, so nothing is charged any more for
 * what was before, should the host come back and tell of it.
 */
export function writeOffUnheard(tx: Tx, machineId: string): void {
  stopMeteringDisks(tx, machineId);
  dropUnreported(tx, 'machine_id', machineId);
  closeChargeWindows(tx, machineId);
}

/** What is to be destroyed on a machine that is lost or removed does not wait for it. Answers how many were destroyed. */
export function settleLostMachines(platform: Platform): { destroyed: number } {
  const stranded = platform.store.transact((tx) =>
    tx.all(
      query
        .selectFrom('instances')
        .innerJoin('machines', 'machines.id', 'instances.machine_id')
        .select('instances.id')
        .where('instances.status', '=', 'destroying')
        .where((eb) => eb.or([eb('machines.lost_at', 'is not', null), eb('machines.removed_at', 'is not', null)])),
    ),
  );
  const destroyed = forEachInOwnTransaction(platform, stranded, (tx, { id }) => {
    const instance = findInstance(tx, id);
    if (instance?.status !== 'destroying') return;
    transition(tx, instance, 'destroyed', { workload_encrypted: null, access_token_encrypted: null });
    const message = 'the machine is lost; what is left of it there is removed if it comes back';
    recordEvent(tx, id, 'destroyed', message);
  });
  return { destroyed };
}

/** A removed machine never comes back: nothing on it is held or waited for any more. */
export function forgetHost(tx: Tx, machineId: string): void {
  writeOffUnheard(tx, machineId);
  tx.run(query.deleteFrom('gpu_claims').where('machine_id', '=', machineId));
  tx.run(
    query
      .updateTable('commands')
      .set({ state: 'closed', finished_at: tx.now })
      .where('machine_id', '=', machineId)
      .where('state', '=', 'open'),
  );
}
