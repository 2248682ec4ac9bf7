import { DAY_MS, MINUTE_MS } from '../../shared/time.js';

/** How long a host may leave an instance in a status that is on its way to another. */
export const DEADLINES_MS = {
  /** Without any progress. */
  creating: 30 * MINUTE_MS,
  starting: 10 * MINUTE_MS,
  stopping: 30 * MINUTE_MS,
} as const;

/** After its own absence the control plane first lets hosts say what they have done meanwhile. */
export const GRACE_MS = 2 * MINUTE_MS;

/** What is stopped or in error is destroyed when the balance was at or below zero for so long and is at or below so much. */
export const AUTO_DESTROY = { afterMs: DAY_MS, atMicro: -5_000_000 } as const;
