import { MINUTE_MS } from '../../../shared/time.js';

/**
 * The kinds of commands. A request of the API records one. Each states the whole desired state of its instance, except `access`, which
 * leaves the workload as it is and replaces its access.
 */
export const COMMAND_KINDS = ['provision', 'start', 'stop', 'release', 'destroy', 'access'] as const;
export type CommandKind = (typeof COMMAND_KINDS)[number];

/**
 * `open` until the agent has answered with a final outcome or a newer command of the instance has closed it. Only open commands are
 * sent.
 */
export type CommandState = 'open' | 'closed' | 'done' | 'refused' | 'failed';

const FIRST_RESEND_MS = 5_000;
/** The longest delay before an open command is sent again. */
export const LONGEST_RESEND_MS = MINUTE_MS;

/** Returns after how many milliseconds a command without an answer is sent again that was sent `attempts` times (1 or more). */
export function resendDelayMs(attempts: number): number {
  return Math.min(FIRST_RESEND_MS * 2 ** Math.min(attempts - 1, 10), LONGEST_RESEND_MS);
}

/**
 * Returns whether a sequence that a host reports can be true. The control plane continues from the highest one, so an invented high
 * number would leave no room to number commands.
 */
export function isPlausible({ sequence }: { sequence: number }, heard: number): boolean {
  return heard <= sequence + 1_000_000;
}
