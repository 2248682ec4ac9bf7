import { WorkloadState, type InstanceState, type Observation } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { isUp } from '../../domain/instance-state.js';
import type { Tx } from '../../store/store.js';
import { dropClaims, findHolders, isQuarantined, reclaimGpus } from '../instances/claims.js';
import { closeOpenCommand, findOpenCommand, recordCommand, type CommandRow } from '../instances/commands.js';
import { NOTHING } from '../../../shared/observation.js';
import { NO_RELEASE, endWorkload } from './command-outcomes.js';
import { findInstance, type Instance } from '../instances/queries.js';
import { considerRelease } from '../instances/release.js';
import { NO_ERROR, amend, fail, transition } from '../instances/transitions.js';
import { recordEvent } from '../system/timeline.js';
import { addressesOf, isAlive } from './observations.js';

const WHY = 'the store was restored from an older copy';

/** What is known of the restored store, and of the host that has more than it. */
interface Circumstances {
  /** The instances that run on the host. */
  up: ReadonlySet<string>;
  /** When the store was restored, in milliseconds since 1970. */
  restoredAt: number;
}

/**
 * The host has carried out commands that this store never gave: it is an older copy. So the host's word is newer, and the
 * instance is taken to where the host has it, on the same disk; what the older copy still wanted of it is overtaken. A stop that
 * its renter has asked for since, and every destroy, stands: it goes out again, above what the host has seen.
 */
export function resumeAfterRestore(tx: Tx, instance: Instance, state: InstanceState, now: Circumstances): void {
  const open = findOpenCommand(tx, instance);
  if (open && stands(open, now)) return void recordCommand(tx, instance, open.kind);
  if (instance.status === 'error' || instance.status === 'destroying') return;
  closeOpenCommand(tx, instance);
  const { observation } = state;
  if (observation && isAlive(observation)) return resume(tx, instance, state, now.up);
  if (observation?.exit) return end(tx, instance, observation);
  if (observation?.state === WorkloadState.WORKLOAD_STATE_STOPPED) return settleStopped(tx, instance);
  return settleAbsent(tx, instance);
}

function stands({ kind, created_at }: CommandRow, { restoredAt }: Circumstances): boolean {
  return kind === 'destroy' || ((kind === 'stop' || kind === 'release') && created_at >= restoredAt);
}

/** It has ended there by itself: what had not come up yet has been up, and what was stopped is. */
function end(tx: Tx, instance: Instance, observation: Observation): void {
  const { status } = instance;
  if (status === 'stopping' || status === 'stopped') return settleStopped(tx, instance);
  endWorkload(tx, status === 'running' ? instance : transition(tx, instance, 'running', NO_RELEASE), observation);
}

/** It runs there: so it does here. */
function resume(tx: Tx, instance: Instance, state: InstanceState, up: ReadonlySet<string>): void {
  const changes = { ...addressesOf(tx, instance, state.observation), run_id: state.observation?.runId || null };
  if (instance.status === 'running') {
    const resumed = amend(tx, instance, { ...changes, ...NO_ERROR });
    if (resumed.access_replacement === 'pending') recordCommand(tx, resumed, 'access');
    return;
  }
  recordEvent(tx, instance.id, 'running', `${WHY}; the workload runs on its host`);
  const said = { ...changes, ...NO_RELEASE, ...NO_ERROR };
  if (instance.status !== 'stopped') return void transition(tx, instance, 'running', said);
  if (!takeBackGpus(tx, instance, up)) {
    recordEvent(tx, instance.id, 'stop_requested', `${WHY}, in which another instance holds the GPUs; it is stopped`);
    return void recordCommand(tx, instance, 'release');
  }
  transition(tx, transition(tx, instance, 'starting'), 'running', said);
}

/** A workload that runs has its GPUs, whatever an older copy says of others that do not run. */
function takeBackGpus(tx: Tx, instance: Instance, up: ReadonlySet<string>): boolean {
  const holders = findHolders(tx, instance).flatMap((id) => findInstance(tx, id) ?? []);
  const isTaken = holders.some(({ id, status }) => up.has(id) || isUp(status));
  if (isTaken || isQuarantined(tx, instance)) return false;
  for (const holder of holders) giveUpGpus(tx, holder);
  reclaimGpus(tx, instance);
  return true;
}

/** What does not run cannot have the GPUs that another uses: the host has released them since. */
function giveUpGpus(tx: Tx, holder: Instance): void {
  const released = { gpus_released: 1, gpu_release: 'released' } as const;
  switch (holder.status) {
    case 'stopped':
      amend(tx, holder, released);
      return dropClaims(tx, holder.id);
    case 'starting':
      closeOpenCommand(tx, holder);
      transition(tx, holder, 'stopped', released);
      return dropClaims(tx, holder.id);
    case 'creating':
      closeOpenCommand(tx, holder);
      return failUnheard(tx, holder);
    case 'destroying':
    case 'error':
      return dropClaims(tx, holder.id);
    default:
      return;
  }
}

function failUnheard(tx: Tx, instance: Instance): void {
  dropClaims(tx, instance.id);
  fail(tx, instance, 'provision_failed', `${WHY}; the host has nothing of it`);
}

function settleStopped(tx: Tx, instance: Instance): void {
  if (instance.status === 'stopped') return void considerRelease(tx, instance);
  const up = instance.status === 'creating' ? transition(tx, instance, 'running', NO_RELEASE) : instance;
  const down = up.status === 'running' ? transition(tx, up, 'stopping') : up;
  const stopped = transition(tx, down, 'stopped', NO_ERROR);
  recordEvent(tx, instance.id, 'stopped', `${WHY}; on its host the workload is down, its disk is kept`);
  considerRelease(tx, stopped);
}

function settleAbsent(tx: Tx, instance: Instance): void {
  switch (instance.status) {
    case 'creating':
      return failUnheard(tx, instance);
    case 'running':
      return endWorkload(tx, instance, { ...NOTHING, state: WorkloadState.WORKLOAD_STATE_ABSENT });
    case 'starting':
    case 'stopping':
      return void considerRelease(tx, transition(tx, instance, 'stopped'));
    default:
      return;
  }
}
