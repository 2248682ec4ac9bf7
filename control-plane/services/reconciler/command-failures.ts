import type { InstanceErrorCode } from '../../domain/instance-codes.js';
import type { Tx } from '../../store/store.js';
import { dropClaims } from '../instances/claims.js';
import { finishCommand, type CommandRow, findPreviousCommand } from '../instances/commands.js';
import type { Instance } from '../instances/queries.js';
import { considerRelease, undoStart } from '../instances/release.js';
import { IMAGE_TOO_SLOW, noteSlowImage } from '../instances/slow-images.js';
import { fail, transition } from '../instances/transitions.js';
import { recordEvent } from '../system/timeline.js';

export interface Reason {
  code: string;
  message: string;
}

/** The host could not make it and has cleaned up after itself: the workload is down. */
export function applyProvisionFailed(tx: Tx, command: CommandRow, instance: Instance, reason: Reason): void {
  finishCommand(tx, command, 'failed', reason);
  if (instance.status !== 'creating') return;
  dropClaims(tx, instance.id);
  if (reason.code === IMAGE_TOO_SLOW) noteSlowImage(tx, instance);
  fail(tx, instance, 'provision_failed', reason.message);
}

/** The host took the start up and could not carry it through: the workload is down, its disk is kept. */
export function applyStartFailed(tx: Tx, command: CommandRow, instance: Instance, reason: Reason): void {
  finishCommand(tx, command, 'failed', reason);
  if (instance.status !== 'starting') return;
  if (instance.gpus_released) dropClaims(tx, instance.id);
  const error_code = startErrorOf(reason) ?? 'start_failed';
  const stopped = transition(tx, instance, 'stopped', { error_code, error_message: reason.message });
  recordEvent(tx, instance.id, error_code, reason.message);
  considerRelease(tx, stopped);
}

/** What a failed start leaves on the instance, where API rule 32 has a name for it. */
export function startErrorOf({ code }: Reason): InstanceErrorCode | null {
  return code === 'GPUS_UNAVAILABLE' ? 'gpus_unavailable' : null;
}

/**
 * The host refused, before touching anything: back to `stopped`. GPUs that this start had claimed anew go at once, unless an
 * earlier start may have landed and is still to be undone: then its undoing, which this start had closed, is recorded again.
 */
export function applyStartRefused(tx: Tx, instance: Instance, command: CommandRow, reason: Reason): void {
  finishCommand(tx, command, 'refused', reason);
  if (instance.status !== 'starting') return;
  const error_code = startErrorOf(reason);
  const stopped = transition(tx, instance, 'stopped', error_code ? { error_code, error_message: reason.message } : {});
  recordEvent(tx, instance.id, 'start_refused', reason.message);
  const previous = findPreviousCommand(tx, command);
  const undoing = previous?.state === 'closed' && (previous.kind === 'stop' || previous.kind === 'release');
  if (undoing) return undoStart(tx, stopped);
  if (instance.gpus_released) dropClaims(tx, instance.id);
  considerRelease(tx, stopped);
}
