import type { Operator } from '../../domain/caller.js';
import type { Tx } from '../../store/store.js';
import { recordAudit } from '../system/audit.js';
import { findStep, forgetStep } from '../system/clock-steps.js';
import { lookAtSchedulesAgain } from '../instances/schedules.js';
import { restartDeadlines } from '../instances/transitions.js';
import { restartExhaustionClocks } from '../metering/clock-shift.js';
import type { Core, Platform } from '../system/platform.js';

export interface ClockState {
  /** Whether decisions that cannot be undone are paused until an operator confirms the clock. */
  held: boolean;
  /** The sum of the clock steps that no operator has confirmed yet; null if there are none. */
  stepped_ms: number | null;
  /** The time of the first of these steps, in ms since 1970 UTC. */
  since: number | null;
}

/** Returns the state of the wall clock for an operator. */
export function getClockState(core: Core): ClockState {
  return core.store.transact(readState);
}

function readState(tx: Tx): ClockState {
  const step = findStep(tx);
  return { held: step !== undefined, stepped_ms: step?.ms ?? null, since: step?.at ?? null };
}

/**
 * Confirms, for an operator, that the wall clock is right now, and ends the pause. Time-outs and the time until automatic destruction
 * start again, because their times are from before the step. Schedules go on by the clock as it is now. Does nothing if nothing is
 * paused.
 */
export function confirmClock(platform: Platform, operator: Operator): ClockState {
  return platform.store.transact((tx) => {
    const step = findStep(tx);
    if (!step) return readState(tx);
    forgetStep(tx);
    tx.afterCommit(() => platform.clockSteps.confirmed());
    restartDeadlines(tx);
    restartExhaustionClocks(tx);
    lookAtSchedulesAgain(tx);
    recordAudit(tx, operator, 'clock.confirm', operator.userId, { stepped_ms: step.ms });
    return readState(tx);
  });
}
