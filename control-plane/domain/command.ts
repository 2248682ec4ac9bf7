import { MINUTE_MS } from '../../shared/time.js';

/**
 * One per client request; each states the whole desired state of its instance, but `access`: that leaves the workload as it is, and
 * replaces who gets in.
 */
export const COMMAND_KINDS = ['provision', 'start', 'stop', 'release', 'destroy', 'access'] as const;
export type CommandKind = (typeof COMMAND_KINDS)[number];

/**
 * `open` until the host has answered for good, or a newer command of the instance has closed it.
 * Only open commands are ever sent.
 */
export type CommandState = 'open' | 'closed' | 'done' | 'refused' | 'failed';

const FIRST_RESEND_MS = 5_000;
/** No command waits longer to be sent again. */
export const LONGEST_RESEND_MS = MINUTE_MS;

/** How long after its `attempts`-th sending (1 is the first) an unanswered command is sent again. */
export function resendDelayMs(attempts: number): number {
  return Math.min(FIRST_RESEND_MS * 2 ** Math.min(attempts - 1, 10), LONGEST_RESEND_MS);
}

/** A host that counts far beyond what was ever sent would leave no room to number commands. */
export function isPlausible({ sequence }: { sequence: number }, heard: number): boolean {
  return heard <= sequence + 1_000_000;
}
