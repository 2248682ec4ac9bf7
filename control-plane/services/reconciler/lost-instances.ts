import type { InstanceErrorCode } from '../../domain/instances/instance-codes.js';
import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { forEachInOwnTransaction } from '../system/for-each.js';
import { stopMeteringDisks } from '../metering/disks.js';
import { dropUnreported } from '../metering/meters.js';
import type { Core, Platform } from '../system/platform.js';
import { recordCommand } from '../instances/commands.js';
import { findInstance, type Instance } from '../instances/queries.js';
import { considerRelease, undoStart } from '../instances/release.js';
import { NO_ERROR, closeChargeWindows, fail, transition } from '../instances/transitions.js';

const REASON = 'the machine was declared lost';

/**
 * Ends the activity of an instance whose machine is declared lost. Its workload can still exist: GPUs stay claimed, and a clean-up
 * command stays open in case the machine comes back. A stopped instance keeps its disk and cannot start ({@link tellDisksGone}
 * informs its renter). {@link settleLostMachines} ends instances in `destroying`.
 */
export function loseInstance(tx: Tx, instance: Instance): void {
  switch (instance.status) {
    case 'creating':
      return endUnheard(tx, instance, 'provision_failed');
    case 'running':
      return endUnheard(tx, instance, 'workload_lost');
    case 'starting':
      return undoStart(tx, transition(tx, instance, 'stopped', { kind: 'start_failed', message: REASON }));
    case 'stopping':
      // Its stop stays open and is carried out if the machine comes back.
      considerRelease(tx, transition(tx, instance, 'stopped', { kind: 'stopped', message: REASON }, NO_ERROR));
      return;
    default:
      return;
  }
}

function endUnheard(tx: Tx, instance: Instance, error_code: InstanceErrorCode): void {
  recordCommand(tx, fail(tx, instance, error_code, REASON), 'release');
}

/**
 * Gives up usage that the host of a lost machine has not reported. Its renters are told that their runs are over, so earlier usage is
 * not charged even if the host comes back and reports it.
 */
export function writeOffUnheard({ connections }: Platform, tx: Tx, machineId: string): void {
  stopMeteringDisks(tx, machineId, connections.disks.areKnown(machineId));
  dropUnreported(tx, 'machine_id', machineId);
  closeChargeWindows(tx, machineId);
}

/**
 * Moves instances in `destroying` on lost or removed machines to `destroyed` without their hosts. Returns the number destroyed.
 */
export function settleLostMachines(core: Core): { destroyed: number } {
  const found = core.store.transact((tx) => tx.all(stranded({})));
  const destroyed = forEachInOwnTransaction(core, found, (tx, { id }) => {
    const instance = findInstance(tx, id);
    if (instance?.status !== 'destroying') return;
    const message = 'the machine is lost; if it comes back, its host removes the container and the disk';
    transition(tx, instance, 'destroyed', { kind: 'destroyed', message });
  });
  return { destroyed };
}

const stranded = compileOnce(() =>
  query
    .selectFrom('instances')
    .innerJoin('machines', 'machines.id', 'instances.machine_id')
    .select('instances.id')
    .where('instances.status', '=', 'destroying')
    .where('instances.status', '<>', sql.lit('destroyed'))
    .where((eb) => eb.or([eb('machines.lost_at', 'is not', null), eb('machines.removed_at', 'is not', null)])),
);

/** Frees the GPU claims and closes the open commands of a machine that is removed, because it never comes back. */
export function forgetHost(platform: Platform, tx: Tx, machineId: string): void {
  writeOffUnheard(platform, tx, machineId);
  tx.run(query.deleteFrom('gpu_claims').where('machine_id', '=', machineId));
  tx.run(
    query
      .updateTable('commands')
      .set({ state: 'closed', finished_at: tx.now })
      .where('machine_id', '=', machineId)
      .where('state', '=', sql.lit('open')),
  );
}
