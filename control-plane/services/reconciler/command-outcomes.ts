import { WorkloadState, type Exit, type Observation } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { BEFORE_OUTPUT, type InstanceErrorCode } from '../../domain/instances/instance-codes.js';
import type { Tx } from '../../store/store.js';
import { MAX_RUN_ID_CHARS } from '../machines/message-validation.js';
import { recordUsageAtEnd, recordUsageUp } from '../metering/usage-reports.js';
import { dropUnreported } from '../metering/meters.js';
import { dropClaims } from '../instances/claims.js';
import { finishCommand, type CommandRow } from '../instances/commands.js';
import type { Instance } from '../instances/queries.js';
import { considerRelease } from '../instances/release.js';
import { forgetSlowImage } from '../instances/slow-images.js';
import { NO_ERROR, amend, fail, transition, type InstanceChanges } from '../instances/transitions.js';
import { recordGpusReleased, recordNote } from '../events/timeline.js';
import { MAX_WORDS_CHARS, isAlive, sshOf, addressesOf } from './observations.js';

export const NO_RELEASE = { gpus_released: 0, gpu_release: null, gpu_release_requested_at: null } as const;
const MAX_KEPT_LINES = 1000;
/** As long as what an agent sends of a workload's output: the rest of a longer line says nothing about its end. */
const MAX_KEPT_CHARS = 64 * 1024;
const MAX_IMAGE_CHARS = 1_024;

/** Applies a command that its host has carried out: finishes it and moves the instance to its new status. */
export function applyDone(tx: Tx, command: CommandRow, instance: Instance, observation: Observation | undefined): void {
  finishCommand(tx, command, 'done');
  switch (command.kind) {
    case 'provision':
      forgetSlowImage(tx, instance);
      return applyRunning(tx, instance, observation);
    case 'start':
      return applyRunning(tx, instance, observation);
    case 'stop':
    case 'release':
      return applyStopped(tx, command, instance, observation);
    case 'destroy':
      return applyDestroyed(tx, instance, observation);
    case 'access':
      return;
  }
}

const SSH_SILENT =
  'SSH has not answered yet; the workload is up and charged, and its output is in its logs. If SSH stays silent, look there for what keeps the machine busy or has replaced our SSH server';

/** Moves an instance to `running`. If the workload has already ended, the same transaction also applies its end. */
function applyRunning(tx: Tx, instance: Instance, observation: Observation | undefined): void {
  if (instance.status !== 'creating' && instance.status !== 'starting') return;
  const addresses = addressesOf(tx, instance, observation);
  const run_id = runIdOf(observation);
  const said = { ...addresses, ...sshOf(tx, instance, observation), ...NO_ERROR, ...NO_RELEASE, run_id };
  const image = observation?.image.slice(0, MAX_IMAGE_CHARS) ?? '';
  const message = image === '' ? 'the workload is up' : `the workload is up: ${image}`;
  const since = upSince(tx, instance, observation);
  const running = transition(tx, instance, 'running', { kind: 'running', message }, said, since);
  if (observation?.sshSilent && isAlive(observation)) recordNote(tx, instance.id, 'ssh_silent', SSH_SILENT);
  recordObservedUsage(tx, instance.id, observation);
  if (observation && !isAlive(observation)) endWorkload(tx, running, observation);
}

/** Returns when the observed run began, but not before its command was first sent (`charge_from`). */
function upSince(tx: Tx, { charge_from }: Instance, observation: Observation | undefined): number {
  if (!observation || !isAlive(observation) || charge_from === null) return tx.now;
  return Math.min(Math.max(tx.now - observation.runningMs, charge_from), tx.now);
}

const STOPPED = { kind: 'stopped', message: 'the workload is down, its disk is kept' } as const;

/** Moves an instance to `stopped`. From `running`, after a stop that timed out, it goes through `stopping` first. */
function applyStopped(tx: Tx, command: CommandRow, instance: Instance, observation: Observation | undefined): void {
  if (command.kind === 'release') dropClaims(tx, instance.id);
  const late = { kind: 'stop_requested', message: 'the host carries out the stop that had timed out' } as const;
  const stopping = instance.status === 'running' ? transition(tx, instance, 'stopping', late) : instance;
  recordLastUsage(tx, instance.id, observation);
  if (stopping.status !== 'stopping' && stopping.status !== 'stopped') return;
  const changes: InstanceChanges = {
    ...keptLines(observation?.exit),
    ...(command.kind === 'release' ? { gpus_released: 1, gpu_release: 'released' } : {}),
  };
  const stopped =
    stopping.status === 'stopped'
      ? amend(tx, stopping, changes)
      : transition(tx, stopping, 'stopped', STOPPED, { ...changes, ...NO_ERROR });
  if (command.kind === 'release') recordGpusReleased(tx, instance.id, 'the GPUs are free for other renters');
  considerRelease(tx, stopped);
}

function applyDestroyed(tx: Tx, instance: Instance, observation: Observation | undefined): void {
  recordObservedUsage(tx, instance.id, observation);
  // Also for an instance that is already `destroyed` because its machine was lost: only now are its GPUs free.
  dropClaims(tx, instance.id);
  if (instance.status !== 'destroying') return;
  const reason = { kind: 'destroyed', message: 'container, disk and contents are removed' } as const;
  transition(tx, instance, 'destroyed', reason);
}

/**
 * Applies the end of a running workload that no command asked for: it goes to `error` and frees its GPUs, as the host confirms.
 */
export function endWorkload(tx: Tx, instance: Instance, observation: Observation): void {
  const { error_code, error_message } = describeEnd(observation);
  dropClaims(tx, instance.id);
  fail(tx, instance, error_code, error_message, keptLines(observation.exit));
  recordLastUsage(tx, instance.id, observation);
}

/** Returns the id of the observed run; null: there is none, or none that an agent gives. */
export function runIdOf(observation: Observation | undefined): string | null {
  const { runId = '' } = observation ?? {};
  return runId === '' || runId.length > MAX_RUN_ID_CHARS ? null : runId;
}

/** Records the usage of an observed run, by which its GPU time is charged. */
function recordObservedUsage(tx: Tx, instanceId: string, observation: Observation | undefined): void {
  if (!observation || runIdOf(observation) === null) return;
  const { runId, runningMs, exit } = observation;
  if (exit) recordUsageAtEnd(tx, instanceId, { runId, ms: exit.ranMs });
  else recordUsageUp(tx, instanceId, { runId, ms: runningMs });
}

/** Records the usage of a workload that is down. GPU time that this observation does not attest is never charged. */
function recordLastUsage(tx: Tx, instanceId: string, observation: Observation | undefined): void {
  recordObservedUsage(tx, instanceId, observation);
  dropUnreported(tx, 'instance_id', instanceId);
}

function describeEnd({ state, exit }: Observation): { error_code: InstanceErrorCode; error_message: string } {
  if (state === WorkloadState.WORKLOAD_STATE_ABSENT || !exit) {
    return { error_code: 'workload_lost', error_message: 'the host no longer has the workload' };
  }
  if (exit.outOfMemory) {
    return {
      error_code: 'workload_failed',
      error_message: withLines('the workload ran out of memory and was killed', exit),
    };
  }
  if (exit.code === 0)
    return { error_code: 'workload_completed', error_message: 'the workload ended with exit code 0' };
  return {
    error_code: 'workload_failed',
    error_message: withLines(`the workload ended with exit code ${exit.code}`, exit),
  };
}

function withLines(message: string, { lastLines }: Exit): string {
  return lastLines.length === 0
    ? message
    : `${message}${BEFORE_OUTPUT}\n${lastLines.slice(-20).join('\n').slice(-MAX_WORDS_CHARS)}`;
}

function keptLines(exit: Exit | undefined): { last_lines?: string } {
  if (!exit) return {};
  let room = MAX_KEPT_CHARS;
  const kept: string[] = [];
  for (const line of exit.lastLines.slice(-MAX_KEPT_LINES).reverse()) {
    if (room <= 0) break;
    kept.push(line.slice(-room));
    room -= line.length;
  }
  return { last_lines: JSON.stringify(kept.reverse()) };
}
