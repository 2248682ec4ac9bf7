import { MINUTE_MS } from '../../../shared/time.js';
import type { InstanceStatus } from '../instances/instance-state.js';

/**
 * The time within which runs of an instance are charged. It opens when the control plane first sends a provision or start. It closes
 * at the stop, the destroy or any other change that tells the renter that the instance is not up. All times are milliseconds since 1970.
 */
export interface ChargeWindow {
  /** Null until a command that can start a run is sent. */
  charge_from: number | null;
  /** Null while it is open. */
  charge_to: number | null;
}

const OPEN_IN: readonly InstanceStatus[] = ['creating', 'starting', 'running'];

/** Returns the window after an instance has changed from one status to another. A stop that timed out opens it again. */
export function windowAfter(
  { charge_from, charge_to }: ChargeWindow,
  before: InstanceStatus,
  after: InstanceStatus,
  now: number,
): ChargeWindow {
  if (after === 'running' && (charge_from === null || charge_to !== null)) return { charge_from: now, charge_to: null };
  const closes = OPEN_IN.includes(before) && !OPEN_IN.includes(after);
  return { charge_from, charge_to: closes ? (charge_to ?? now) : charge_to };
}

/** For how long a run can be up, at most, when its host reports that its command is still under way. */
const UNTOLD_MS = 10 * MINUTE_MS;

/** Before when no run counts: the beginning of the charge window, and `run_not_before`. */
export interface RunFloors {
  charge_from: number | null;
  run_not_before: number | null;
}

/**
 * Returns the floors after a host has reported progress of a provision or start. Without this, a host that reports progress for a
 * day could then state a run of a day, of which its renter has seen nothing.
 */
export function floorsAfterProgress({ charge_from, run_not_before }: RunFloors, now: number): RunFloors {
  const floor = now - UNTOLD_MS;
  return {
    charge_from: charge_from === null ? null : Math.max(charge_from, floor),
    run_not_before: Math.max(run_not_before ?? floor, floor),
  };
}
