import type { InstanceErrorCode } from '../../domain/instances/instance-codes.js';
import type { Tx } from '../../store/store.js';
import { dropClaims } from '../instances/claims.js';
import { finishCommand, type CommandRow, findPreviousCommand } from '../instances/commands.js';
import type { Instance } from '../instances/queries.js';
import { considerRelease, undoStart } from '../instances/release.js';
import { IMAGE_TOO_SLOW, noteSlowImage } from '../instances/slow-images.js';
import { fail, transition } from '../instances/transitions.js';

export interface Reason {
  code: string;
  message: string;
}

/** Applies a failed provision: the instance goes to `error` and frees its GPUs, because the host has removed what it made. */
export function applyProvisionFailed(tx: Tx, command: CommandRow, instance: Instance, reason: Reason): void {
  finishCommand(tx, command, 'failed', reason);
  if (instance.status !== 'creating') return;
  dropClaims(tx, instance.id);
  if (reason.code === IMAGE_TOO_SLOW) noteSlowImage(tx, instance);
  fail(tx, instance, 'provision_failed', reason.message);
}

/** Applies a start that the host accepted and that failed: the instance is `stopped` again with its disk. */
export function applyStartFailed(tx: Tx, command: CommandRow, instance: Instance, reason: Reason): void {
  finishCommand(tx, command, 'failed', reason);
  if (instance.status !== 'starting') return;
  if (instance.gpus_released) dropClaims(tx, instance.id);
  const error_code = startErrorOf(reason) ?? 'start_failed';
  const { message } = reason;
  const changes = { error_code, error_message: message };
  considerRelease(tx, transition(tx, instance, 'stopped', { kind: error_code, message }, changes));
}

/** Returns the error code of a failed start, if API rule 32 has one for it; otherwise null. */
export function startErrorOf({ code }: Reason): InstanceErrorCode | null {
  return code === 'GPUS_UNAVAILABLE' ? 'gpus_unavailable' : null;
}

/**
 * Applies a start that the host refused before it changed anything: the instance is `stopped` again. GPUs that this start had
 * reclaimed are freed at once. But if this start has closed a stop or release that can be undoing an earlier start, that is
 * recorded again instead.
 */
export function applyStartRefused(tx: Tx, instance: Instance, command: CommandRow, reason: Reason): void {
  finishCommand(tx, command, 'refused', reason);
  if (instance.status !== 'starting') return;
  const error_code = startErrorOf(reason);
  const { message } = reason;
  const changes = error_code ? { error_code, error_message: message } : {};
  const stopped = transition(tx, instance, 'stopped', { kind: 'start_refused', message }, changes);
  const previous = findPreviousCommand(tx, command);
  const undoing = previous?.state === 'closed' && (previous.kind === 'stop' || previous.kind === 'release');
  if (undoing) return undoStart(tx, stopped);
  if (instance.gpus_released) dropClaims(tx, instance.id);
  considerRelease(tx, stopped);
}
