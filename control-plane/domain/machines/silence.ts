import { MINUTE_MS } from '../../../shared/time.js';

/** Disks are metered until their host has been silent for this long. */
export const DISKS_PAUSE_AFTER_MS = 15 * MINUTE_MS;
/** A control plane that has not looked at its hosts for longer was stalled. */
const STALLED_AFTER_MS = 2 * MINUTE_MS;
/** So many hosts, if they are more than a third of all, do not fall silent each for a reason of its own. */
const MASS_ABSENCE = 5;

/** What a control plane sees when it looks at its hosts. */
export interface Look {
  /** Milliseconds since its last look. */
  sinceMs: number;
  /** The hosts whose disks are not paused. */
  hosts: number;
  /** Those of them that are not heard. */
  missing: number;
}

/** Tells whether the time since the last look is no silence of the hosts: the control plane was stalled, or misses too many of them. */
export function isOwnSilence({ sinceMs, hosts, missing }: Look): boolean {
  return sinceMs > STALLED_AFTER_MS || (missing >= MASS_ABSENCE && 3 * missing > hosts);
}
