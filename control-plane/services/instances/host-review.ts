import type { InstanceState } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import type { Ids } from '../../../shared/ids.js';
import type { CommandKind } from '../../domain/command.js';
import type { Tx } from '../../store/store.js';
import { findGpus } from '../machines.js';
import { claimGpus } from './claims.js';
import { findOpenCommand, recordCommand } from './commands.js';
import { findInstanceOfMachine, isAlive } from './landing.js';
import type { Instance } from './queries.js';
import { amend, recordEvent } from './transitions.js';

/**
 * Compares what a host has of known instances with the store: what it still has of a destroyed one is destroyed again, and what
 * runs of one that ended or was stopped is stopped. Until the host has done it, the GPUs are held.
 */
export function reviewKnown(tx: Tx, ids: Ids, machineId: string, states: readonly InstanceState[]): void {
  for (const state of states) {
    const instance = findInstanceOfMachine(tx, machineId, state.instanceId);
    // An open command says already what is to become of it.
    if (!instance || findOpenCommand(tx, instance)) continue;
    const kind = cleanUpOf(instance, state);
    if (kind === undefined) continue;
    holdGpus(tx, instance, state.gpuUuids);
    recordEvent(tx, instance.id, 'cleaned_up', `the host still had the workload, ${instance.status} as it is`);
    const sequence = Math.max(instance.sequence, state.sequence);
    recordCommand(tx, ids, amend(tx, instance, { sequence }), kind);
  }
}

function cleanUpOf(instance: Instance, { observation, sequence }: InstanceState): CommandKind | undefined {
  const runs = observation !== undefined && isAlive(observation);
  switch (instance.status) {
    case 'destroyed':
      return 'destroy';
    case 'error':
      return runs ? 'release' : undefined;
    case 'stopped':
      // A host that was told more than the store knows has been started by a newer store than this one.
      if (!runs || sequence > instance.sequence) return undefined;
      return instance.gpus_released ? 'release' : 'stop';
    default:
      return undefined;
  }
}

function holdGpus(tx: Tx, instance: Instance, uuids: readonly string[]): void {
  const free = findGpus(tx, instance.machine_id).filter(
    ({ instance_id, quarantine_id }) => !instance_id && !quarantine_id,
  );
  claimGpus(
    tx,
    instance,
    free.map(({ uuid }) => uuid).filter((uuid) => uuids.includes(uuid)),
  );
}
