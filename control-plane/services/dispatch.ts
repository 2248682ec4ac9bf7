import type { Command, ControlMessage, WorkloadSpec } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { resendDelayMs } from '../domain/command.js';
import { query } from '../store/sql.js';
import type { Tx } from '../store/store.js';
import type { CommandRow } from './instances/commands.js';
import { findInstance, gpusOf } from './instances/queries.js';
import { WORKLOAD_PURPOSE, type Workload } from './instances/workload.js';
import type { Platform } from './platform.js';

const BATCH = 200;

/**
 * Sends open commands that are due to hosts that are connected. What it is about to send is committed first; what a host does
 * not answer, a later run sends again with the same identity (contract rules 3 and 4). Answers how many were sent.
 */
export function dispatchCommands(platform: Platform): { sent: number } {
  const connected = platform.hosts.connectedIds();
  if (connected.length === 0) return { sent: 0 };
  const messages = platform.store.transact((tx) => {
    const due = tx.all(
      query
        .selectFrom('commands')
        .selectAll()
        .where('state', '=', 'open')
        .where('next_send_at', '<=', tx.now)
        .where('machine_id', 'in', connected)
        .orderBy('next_send_at')
        .limit(BATCH),
    );
    if (due.length === BATCH) tx.nudge('dispatch');
    return due.map((command) => prepare(platform, tx, command));
  });
  let sent = 0;
  for (const { machineId, message } of messages) sent += platform.hosts.send(machineId, message) ? 1 : 0;
  return { sent };
}

function prepare(platform: Platform, tx: Tx, command: CommandRow): { machineId: string; message: ControlMessage } {
  const attempts = command.attempts + 1;
  tx.run(
    query
      .updateTable('commands')
      .set({ attempts, next_send_at: tx.now + resendDelayMs(attempts) })
      .where('id', '=', command.id),
  );
  return {
    machineId: command.machine_id,
    message: { message: { $case: 'command', value: toWire(platform, tx, command) } },
  };
}

/** The whole desired state, so that the command stands alone. */
function toWire(platform: Platform, tx: Tx, command: CommandRow): Command {
  const identity = { commandId: command.id, instanceId: command.instance_id, sequence: command.sequence };
  switch (command.kind) {
    case 'provision':
    case 'start':
      return {
        ...identity,
        desired: {
          $case: 'running',
          value: { mayCreate: command.kind === 'provision', spec: specOf(platform, tx, command) },
        },
      };
    case 'stop':
    case 'release':
      return { ...identity, desired: { $case: 'stopped', value: { releaseGpus: command.kind === 'release' } } };
    case 'destroy':
      return { ...identity, desired: { $case: 'absent', value: {} } };
  }
}

function specOf({ sealer }: Platform, tx: Tx, command: CommandRow): WorkloadSpec {
  const instance = findInstance(tx, command.instance_id);
  if (!instance?.workload_sealed) throw new Error(`instance ${command.instance_id} has nothing to run`);
  return {
    ...(sealer.open(WORKLOAD_PURPOSE, instance.workload_sealed) as Workload),
    gpuUuids: gpusOf(tx, instance.id),
  };
}
