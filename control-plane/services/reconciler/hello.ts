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
  /** The ids of workloads that are new in quarantine. */
  quarantined: string[];
}

/**
 * Applies the hello of a host that has connected: records its inventory, reconciles its workloads with the database, and makes its open
 * commands due. Returns the sequence floors for the welcome, and the workloads that are new in quarantine. Refuses with
 * VALIDATION_FAILED what no honest agent would send, and with MACHINE_NOT_FOUND.
 */
export function handleHello(platform: Platform, machineId: string, hello: Hello): HelloAnswer {
  validateHello(hello);
  return platform.store.transact((tx) => {
    // An operator can have removed the machine after the stream was opened.
    const machine = findMachine(tx, machineId);
    if (hello.inventory) updateInventory(tx, machineId, hello.inventory);
    const identity = {
      boot_id: hello.bootId,
      agent_version: hello.agentVersion,
      last_seen_at: tx.now,
      lost_at: null,
      // A host that cannot see its workloads has not resynced.
      needs_resync: hello.unseen ? machine.needs_resync : (0 as const),
    };
    tx.run(query.updateTable('machines').set(identity).where('id', '=', machineId));
    const quarantined = hello.unseen ? [] : reconcile(tx, machine, hello.instances);
    const due = tx.all(
      query
        .updateTable('commands')
        .set({ next_send_at: tx.now })
        .where('machine_id', '=', machineId)
        .where('state', '=', sql.lit('open'))
        .returning('instance_id'),
    );
    tx.nudge('dispatch');
    const withCommand = new Set(due.map(({ instance_id }) => instance_id));
    return { floors: floorsOf(tx, machineId, withCommand), quarantined };
  });
}

/** Reconciles a host's workloads with the database. Returns the ids of those that are new in quarantine. */
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

/**
 * Returns the sequence floors of a host: commands below them must not run again, even on a host that lost its journal. `withCommand`:
 * the instances that have an open command.
 */
function floorsOf(tx: Tx, machineId: string, withCommand: ReadonlySet<string>): SequenceFloor[] {
  const live = tx.all(
    query
      .selectFrom('instances')
      .select(['id', 'sequence', 'report_number', 'status'])
      .where('machine_id', '=', machineId)
      .where('status', '<>', sql.lit('destroyed')),
  );
  return live.map(({ id, sequence, report_number, status }) => ({
    instanceId: id,
    sequence,
    reportNumber: report_number,
    running: status === 'running',
    commandOpen: withCommand.has(id),
  }));
}
