import { WorkloadState, type InstanceState, type Observation } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { isUp } from '../../domain/instances/instance-state.js';
import type { Tx } from '../../store/store.js';
import { dropClaims, findHolders, isQuarantined, reclaimGpus } from '../instances/claims.js';
import { closeOpenCommand, findOpenCommand, recordCommand, type CommandRow } from '../instances/commands.js';
import { NOTHING } from '../../../shared/observation.js';
import { NO_RELEASE, endWorkload } from './command-outcomes.js';
import { findInstance, type Instance } from '../instances/queries.js';
import { considerRelease } from '../instances/release.js';
import { NO_ERROR, amend, fail, transition } from '../instances/transitions.js';
import { recordGpusReleased, recordNote } from '../events/timeline.js';
import { addressesOf, isAlive } from './observations.js';

const WHY = 'the database was restored from a backup';
const RUNS = { kind: 'running', message: `${WHY}; the workload runs on its host` } as const;
const HAS_RUN = { kind: 'running', message: `${WHY}; the workload has run on its host since` } as const;
const STARTED = { kind: 'start_requested', message: `${WHY}; the workload runs on its host` } as const;
const WENT_DOWN = { kind: 'stop_requested', message: `${WHY}; the workload is down on its host` } as const;
const IS_DOWN = { kind: 'stopped', message: `${WHY}; the workload is down on its host, its disk is kept` } as const;
const IS_ABSENT = { kind: 'stopped', message: `${WHY}; the workload is not up on its host` } as const;
const RUNS_ELSEWHERE = { kind: 'stopped', message: `${WHY}; another instance uses the GPUs on the host` } as const;

interface Circumstances {
  /** The instances that run on the host. */
  up: ReadonlySet<string>;
  /** When the database was restored, in ms since 1970 UTC. */
  restoredAt: number;
}

/**
 * Brings an instance to the state that its host reports. The host has carried out commands that are missing in the restored database,
 * so the host's state is newer, and the open command from the backup is closed. A stop that was requested since the restore, and
 * every destroy, stays wanted: it is recorded again with a sequence above all that the host has seen.
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

/** Applies the end of a workload that ended by itself. One that the database has in `creating` or `starting` has run first. */
function end(tx: Tx, instance: Instance, observation: Observation): void {
  const { status } = instance;
  if (status === 'stopping' || status === 'stopped') return settleStopped(tx, instance);
  endWorkload(
    tx,
    status === 'running' ? instance : transition(tx, instance, 'running', HAS_RUN, NO_RELEASE),
    observation,
  );
}

/** Brings an instance to `running`, because its workload runs on the host. Stops it if another instance holds its GPUs by now. */
function resume(tx: Tx, instance: Instance, state: InstanceState, up: ReadonlySet<string>): void {
  const changes = { ...addressesOf(tx, instance, state.observation), run_id: state.observation?.runId || null };
  if (instance.status === 'running') {
    const resumed = amend(tx, instance, { ...changes, ...NO_ERROR });
    if (resumed.access_replacement === 'pending') recordCommand(tx, resumed, 'access');
    return;
  }
  const said = { ...changes, ...NO_RELEASE, ...NO_ERROR };
  if (instance.status !== 'stopped') return void transition(tx, instance, 'running', RUNS, said);
  if (!takeBackGpus(tx, instance, up)) {
    recordNote(tx, instance.id, 'stop_requested', `${WHY}, and another instance holds the GPUs; this one is stopped`);
    return void recordCommand(tx, instance, 'release');
  }
  transition(tx, transition(tx, instance, 'starting', STARTED), 'running', RUNS, said);
}

/**
 * Claims the GPUs of a running workload again, also from instances that the backup shows as holders but that do not run. Returns
 * false if an instance that runs, or a workload in quarantine, holds one.
 */
function takeBackGpus(tx: Tx, instance: Instance, up: ReadonlySet<string>): boolean {
  const holders = findHolders(tx, instance).flatMap((id) => findInstance(tx, id) ?? []);
  const isTaken = holders.some(({ id, status }) => up.has(id) || isUp(status));
  if (isTaken || isQuarantined(tx, instance)) return false;
  for (const holder of holders) giveUpGpus(tx, holder);
  reclaimGpus(tx, instance);
  return true;
}

/**
 * Takes the GPUs from an instance that does not run: as another one uses them, the host must have released them since the
 * backup.
 */
function giveUpGpus(tx: Tx, holder: Instance): void {
  const released = { gpus_released: 1, gpu_release: 'released' } as const;
  switch (holder.status) {
    case 'stopped':
      amend(tx, holder, released);
      recordGpusReleased(tx, holder.id, `${WHY}; another instance uses the GPUs on the host`);
      return dropClaims(tx, holder.id);
    case 'starting':
      closeOpenCommand(tx, holder);
      transition(tx, holder, 'stopped', RUNS_ELSEWHERE, released);
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
  fail(tx, instance, 'provision_failed', `${WHY}; the host does not have the workload`);
}

function settleStopped(tx: Tx, instance: Instance): void {
  if (instance.status === 'stopped') return void considerRelease(tx, instance);
  const up = instance.status === 'creating' ? transition(tx, instance, 'running', HAS_RUN, NO_RELEASE) : instance;
  const down = up.status === 'running' ? transition(tx, up, 'stopping', WENT_DOWN) : up;
  considerRelease(tx, transition(tx, down, 'stopped', IS_DOWN, NO_ERROR));
}

function settleAbsent(tx: Tx, instance: Instance): void {
  switch (instance.status) {
    case 'creating':
      return failUnheard(tx, instance);
    case 'running':
      return endWorkload(tx, instance, { ...NOTHING, state: WorkloadState.WORKLOAD_STATE_ABSENT });
    case 'starting':
    case 'stopping':
      return void considerRelease(tx, transition(tx, instance, 'stopped', IS_ABSENT));
    default:
      return;
  }
}
