import {
  WorkloadState,
  type Hello,
  type InstanceState,
  type SequenceFloor,
} from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { restoredAt } from '../../store/meta.js';
import type { Row } from '../../store/schema.js';
import { query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { tellDisksBack } from './lost-disks.js';
import { updateInventory } from '../machines/inventory.js';
import { validateHello } from '../machines/message-validation.js';
import { reconcileLeftover, reconcileExpected } from './reconcile.js';
import { findMachine } from '../machines/machines.js';
import { meterDisks } from '../metering/disks.js';
import type { Platform } from '../system/platform.js';
import { reconcileUnknown } from './quarantine.js';

export interface HelloAnswer {
  floors: SequenceFloor[];
  /** The instances of which the host has a workload that the store has not heard of before. */
  quarantined: string[];
}

/**
 * A host has connected: records what it says of itself, compares what it has with the store, and sends everything open again.
 * Returns the sequence floors for its Welcome, and what it has that is new to quarantine. Refuses with VALIDATION_FAILED what no honest host would say, and with
 * MACHINE_NOT_FOUND.
 */
export function handleHello(platform: Platform, machineId: string, hello: Hello): HelloAnswer {
  validateHello(hello);
  return platform.store.transact((tx) => {
    // Also for a stream that was opened before an operator removed the machine.
    const machine = findMachine(tx, machineId);
    if (hello.inventory) updateInventory(tx, machineId, hello.inventory);
    const identity = {
      boot_id: hello.bootId,
      agent_version: hello.agentVersion,
      last_seen_at: tx.now,
      lost_at: null,
      // One that cannot see what it has has not been heard.
      needs_resync: hello.unseen ? machine.needs_resync : (0 as const),
    };
    tx.run(query.updateTable('machines').set(identity).where('id', '=', machineId));
    const quarantined = hello.unseen ? [] : reconcile(tx, machine, hello.instances);
    tx.run(
      query
        .updateTable('commands')
        .set({ next_send_at: tx.now })
        .where('machine_id', '=', machineId)
        .where('state', '=', 'open'),
    );
    tx.nudge('dispatch');
    return { floors: floorsOf(tx, machineId), quarantined };
  });
}

/** Compares what a host has seen of its workloads with the store. Returns the instances that are new to quarantine. */
function reconcile(
  tx: Tx,
  { id: machineId, needs_resync }: Row<'machines'>,
  instances: readonly InstanceState[],
): string[] {
  const restored = needs_resync ? restoredAt(tx) : undefined;
  const present = instances.filter(({ observation }) => observation?.state !== WorkloadState.WORKLOAD_STATE_ABSENT);
  const quarantined = reconcileUnknown(tx, machineId, present);
  reconcileExpected(tx, machineId, instances, restored);
  reconcileLeftover(tx, machineId, present);
  const held = new Set(present.map(({ instanceId }) => instanceId));
  meterDisks(tx, machineId, held);
  tellDisksBack(tx, machineId, held);
  return quarantined;
}

/** Below an instance's newest command nothing may run again, even on a host that lost its journal. */
function floorsOf(tx: Tx, machineId: string): SequenceFloor[] {
  const live = tx.all(
    query
      .selectFrom('instances')
      .leftJoin('commands', (join) =>
        join
          .onRef('commands.instance_id', '=', 'instances.id')
          .onRef('commands.machine_id', '=', 'instances.machine_id')
          .on('commands.state', '=', sql.lit('open')),
      )
      .select(['instances.id', 'instances.sequence', 'report_number', 'status', 'commands.id as command_id'])
      .where('instances.machine_id', '=', machineId)
      .where('status', '<>', sql.lit('destroyed')),
  );
  return live.map(({ id, sequence, report_number, status, command_id }) => ({
    instanceId: id,
    sequence,
    reportNumber: report_number,
    running: status === 'running',
    commandOpen: command_id !== null,
  }));
}
