import {
  WorkloadState,
  type Gpu,
  type Hello,
  type InstanceState,
  type SequenceFloor,
} from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { restoredAt } from '../../store/meta.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { tellDisksBack } from './lost-disks.js';
import { refuseOwnName } from '../machines/browser-hosts.js';
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
  /** The GPUs of the hello, if they were stored like this before; null: they were not. */
  storedGpus: readonly Gpu[] | null;
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
    if (hello.inventory) refuseOwnName(platform, hello.inventory.publicAddress, machine);
    const areStored = hello.inventory !== undefined && updateInventory(tx, machine, hello.inventory);
    noteHello(tx, machine, hello);
    const quarantined = hello.unseen ? [] : reconcile(tx, machine, hello.instances);
    if (!hello.unseen) tx.afterCommit(() => platform.connections.disks.list(machineId));
    const storedGpus = areStored ? (hello.inventory?.gpus ?? null) : null;
    return { floors: floorsOf(tx, machineId, makeDue(tx, machineId)), quarantined, storedGpus };
  });
}

/** Records what a hello says about the host, as far as it is new. While a host is connected, `last_seen_at` is written by a worker. */
function noteHello(tx: Tx, machine: Row<'machines'>, hello: Hello): void {
  const identity = {
    boot_id: hello.bootId,
    agent_version: hello.agentVersion,
    lost_at: null,
    silent_ms: 0,
    // Nobody has seen yet whether the disks are there.
    disks_paused: hello.unseen ? machine.disks_paused : (0 as const),
    reports_findings: hello.reportsFindings ? (1 as const) : (0 as const),
    takes_upgrades: hello.takesUpgrades ? (1 as const) : (0 as const),
    // A host that cannot see its workloads has not resynced.
    needs_resync: hello.unseen ? machine.needs_resync : (0 as const),
  };
  const names = Object.keys(identity) as (keyof typeof identity)[];
  if (machine.last_seen_at !== null && names.every((name) => identity[name] === machine[name])) return;
  const changes = { ...identity, last_seen_at: tx.now };
  tx.run(query.updateTable('machines').set(changes).where('id', '=', machine.id));
}

/** Makes the open commands of a host due. Returns their instances. */
function makeDue(tx: Tx, machineId: string): ReadonlySet<string> {
  const open = tx.all(openCommands({ machineId }));
  if (open.length === 0) return new Set();
  tx.run(
    query
      .updateTable('commands')
      .set({ next_send_at: tx.now })
      .where('machine_id', '=', machineId)
      .where('state', '=', sql.lit('open')),
  );
  tx.nudge('dispatch');
  return new Set(open.map(({ instance_id }) => instance_id));
}

const openCommands = compileOnce(({ machineId }: { machineId: string }) =>
  query
    .selectFrom('commands')
    .select('instance_id')
    .where('machine_id', '=', machineId)
    .where('state', '=', sql.lit('open')),
);

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
  return tx.all(liveInstances({ machineId })).map(({ id, sequence, report_number, status }) => ({
    instanceId: id,
    sequence,
    reportNumber: report_number,
    running: status === 'running',
    commandOpen: withCommand.has(id),
  }));
}

const liveInstances = compileOnce(({ machineId }: { machineId: string }) =>
  query
    .selectFrom('instances')
    .select(['id', 'sequence', 'report_number', 'status'])
    .where('machine_id', '=', machineId)
    .where('status', '<>', sql.lit('destroyed')),
);
