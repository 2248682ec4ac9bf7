import { DAY_MS, MINUTE_MS } from '../../shared/time.js';

/** For how long a host can leave an instance in a transitional status before it times out. */
export const DEADLINES_MS = {
  /** Counted from the last progress. */
  creating: 30 * MINUTE_MS,
  starting: 10 * MINUTE_MS,
  stopping: 30 * MINUTE_MS,
} as const;

/** For so long after its start the control plane times nothing out, so that hosts can first report what they have done meanwhile. */
export const GRACE_MS = 2 * MINUTE_MS;

/**
 * The rule for destroying instances in `stopped` and `error`: the balance has been at or below zero for `afterMs`, and is at or below
 * `atMicro`.
 */
export const AUTO_DESTROY = { afterMs: DAY_MS, atMicro: -5_000_000 } as const;
