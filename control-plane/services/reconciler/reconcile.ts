import { WorkloadState, type InstanceState } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { isPlausible, type CommandKind } from '../../domain/instances/command.js';
import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { findGpus } from '../machines/machines.js';
import { resumeAfterRestore } from './after-restore.js';
import { claimGpus } from '../instances/claims.js';
import { findOpenChange, recordCommand } from '../instances/commands.js';
import { NOTHING } from '../../../shared/observation.js';
import { endWorkload, applyDone } from './command-outcomes.js';
import { findInstance, type Instance } from '../instances/queries.js';
import { amend } from '../instances/transitions.js';
import { recordNote } from '../events/timeline.js';
import { findInstanceOfMachine, isAlive } from './observations.js';

/**
 * Reconciles the instances that a host should have with the states in its hello. Workloads that are down come first, because that
 * frees GPUs. `restoredAt` is when the database was restored, if the host has not said hello since.
 */
export function reconcileExpected(
  tx: Tx,
  machineId: string,
  states: readonly InstanceState[],
  restoredAt: number | undefined,
): void {
  const told = new Map(states.map((state) => [state.instanceId, state]));
  const up = new Set(states.filter(runs).map(({ instanceId }) => instanceId));
  const live = tx.all(liveInstances({ machineId }));
  for (const { id } of live.sort((a, b) => Number(up.has(a.id)) - Number(up.has(b.id)))) {
    const instance = findInstance(tx, id);
    if (instance) compare(tx, instance, told.get(id), { up, restoredAt });
  }
}

const liveInstances = compileOnce(({ machineId }: { machineId: string }) =>
  query
    .selectFrom('instances')
    .select('id')
    .where('machine_id', '=', machineId)
    .where('status', '<>', sql.lit('destroyed')),
);

function compare(
  tx: Tx,
  instance: Instance,
  state: InstanceState | undefined,
  { up, restoredAt }: { up: ReadonlySet<string>; restoredAt: number | undefined },
): void {
  if (!state) return noticeLoss(tx, instance);
  if (state.sequence > instance.sequence) {
    if (!isPlausible(instance, state.sequence)) return;
    const raised = amend(tx, instance, { sequence: state.sequence });
    return restoredAt === undefined ? undefined : resumeAfterRestore(tx, raised, state, { up, restoredAt });
  }
  if (state.sequence === instance.sequence) return noticeEnd(tx, instance, state);
  // The host's sequence is lower: its journal is lost, or a command is on its way. The host must report again which run is up.
  if (instance.status === 'running' && !findOpenChange(tx, instance)) amend(tx, instance, { run_id: null });
}

/** Applies an end that the host has already reported, to a later state of the database than the restored one. */
function noticeEnd(tx: Tx, instance: Instance, { sequence, observation }: InstanceState): void {
  if (!observation?.exit) return;
  const open = findOpenChange(tx, instance);
  if (!open && instance.status === 'running') return endWorkload(tx, instance, observation);
  const hasRun = open?.sequence === sequence && (open.kind === 'provision' || open.kind === 'start');
  if (hasRun) applyDone(tx, open, instance, observation);
}

/** Ends an instance whose workload is missing on its host, unless an open command explains that. */
function noticeLoss(tx: Tx, instance: Instance): void {
  if (instance.status !== 'running' || findOpenChange(tx, instance)) return;
  endWorkload(tx, instance, { ...NOTHING, state: WorkloadState.WORKLOAD_STATE_ABSENT });
}

/**
 * Cleans up workloads that a host should not have any more: it destroys those of destroyed instances, and stops running ones of
 * instances in `error` or `stopped`. Their GPUs stay claimed until the host has confirmed.
 */
export function reconcileLeftover(tx: Tx, machineId: string, states: readonly InstanceState[]): void {
  for (const state of states) {
    const instance = findInstanceOfMachine(tx, machineId, state.instanceId);
    // An open command already decides about the workload.
    if (!instance || findOpenChange(tx, instance)) continue;
    const kind = cleanUpOf(instance, state);
    if (kind === undefined) continue;
    holdGpus(tx, instance, state.gpuUuids);
    recordNote(
      tx,
      instance.id,
      'cleaned_up',
      `the host still had the workload of this instance, which is ${instance.status}; it is cleaned up`,
    );
    const sequence = Math.max(instance.sequence, state.sequence);
    recordCommand(tx, amend(tx, instance, { sequence }), kind);
  }
}

function cleanUpOf(instance: Instance, state: InstanceState): CommandKind | undefined {
  if (instance.status === 'destroyed') return 'destroy';
  if (!runs(state)) return undefined;
  if (instance.status === 'error') return 'release';
  if (instance.status === 'stopped') return instance.gpus_released ? 'release' : 'stop';
  return undefined;
}

function runs({ observation }: InstanceState): boolean {
  return observation !== undefined && isAlive(observation);
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
