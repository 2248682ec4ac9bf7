import type { Operator } from '../../domain/caller.js';
import { Refusal } from '../../domain/refusal.js';
import { query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordAudit } from '../system/audit.js';
import { forgetHost, loseInstance, writeOffUnheard } from './lost-instances.js';
import { tellDisksGone } from './lost-disks.js';
import type { Instance } from '../instances/queries.js';
import { disownGpus } from '../machines/gpu-owners.js';
import { describeMachine, findMachine, type MachineDetails } from '../machines/machines.js';
import type { Platform } from '../system/platform.js';

/** How an operator empties a machine. */
const TO_EMPTY = 'cordon it, destroy each of its instances with a reason, and remove its workloads in quarantine';

/**
 * Declares, for an operator, that a machine is not expected back. Its running instances end, its instances in `destroying` do not wait
 * for it, nothing starts on it, and usage that it has not reported is never charged. If it connects again, it is no longer lost
 * but stays cordoned. Refuses with MACHINE_NOT_FOUND, and with MACHINE_IN_USE while it is connected.
 */
export function declareLost(platform: Platform, operator: Operator, id: string): MachineDetails {
  return platform.store.transact((tx) => {
    const machine = findMachine(tx, id);
    if (platform.connections.isConnected(id)) {
      throw new Refusal('MACHINE_IN_USE', `the machine is connected, so it is not lost; to empty it, ${TO_EMPTY}`);
    }
    const changes = { lost_at: machine.lost_at ?? tx.now, cordoned_at: machine.cordoned_at ?? tx.now };
    tx.run(query.updateTable('machines').set(changes).where('id', '=', id));
    for (const instance of liveInstances(tx, id)) loseInstance(tx, instance);
    writeOffUnheard(platform, tx, id);
    tellDisksGone(tx, id, 'lost');
    recordAudit(tx, operator, 'machine.lost', id);
    tx.nudge('lost-machines');
    tx.afterCommit(() => platform.connections.close(id, 'an operator has declared this host lost'));
    return describeMachine(platform, tx, { ...machine, ...changes });
  });
}

/**
 * Removes a machine for good, for an operator; its credentials are refused from now on. Refuses with MACHINE_NOT_FOUND, and with
 * MACHINE_IN_USE while it has instances or workloads in quarantine, unless it was declared lost.
 */
export function removeMachine(platform: Platform, operator: Operator, id: string): void {
  platform.store.transact((tx) => {
    const machine = findMachine(tx, id);
    const inUse = liveInstances(tx, id).length + quarantined(tx, id);
    if (machine.lost_at === null && inUse > 0) {
      throw new Refusal(
        'MACHINE_IN_USE',
        `${inUse} instance(s) or quarantined workload(s) are on this machine; ${TO_EMPTY}; or, if it is gone for good, declare it lost`,
      );
    }
    forgetHost(platform, tx, id);
    tellDisksGone(tx, id, 'removed');
    tx.run(query.deleteFrom('quarantine').where('machine_id', '=', id));
    tx.run(query.deleteFrom('findings').where('machine_id', '=', id));
    tx.run(query.updateTable('machines').set({ removed_at: tx.now }).where('id', '=', id));
    disownGpus(tx, id);
    recordAudit(tx, operator, 'machine.remove', id);
    tx.nudge('lost-machines');
    tx.afterCommit(() => platform.connections.close(id, 'an operator has removed this host'));
  });
}

function liveInstances(tx: Tx, machineId: string): Instance[] {
  return tx.all(
    query
      .selectFrom('instances')
      .selectAll()
      .where('machine_id', '=', machineId)
      .where('status', '<>', sql.lit('destroyed')),
  );
}

function quarantined(tx: Tx, machineId: string): number {
  return tx.all(query.selectFrom('quarantine').select('id').where('machine_id', '=', machineId)).length;
}
