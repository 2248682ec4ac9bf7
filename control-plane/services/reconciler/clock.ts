import type { Operator } from '../../domain/caller.js';
import type { Tx } from '../../store/store.js';
import { recordAudit } from '../system/audit.js';
import { findStep, forgetStep } from '../system/clock-steps.js';
import { restartDeadlines } from '../instances/transitions.js';
import { restartExhaustionClocks } from '../metering/clock-shift.js';
import type { Platform } from '../system/platform.js';

export interface ClockState {
  /** Whether what cannot be taken back waits for an operator. */
  held: boolean;
  /** By how much the wall clock was set since an operator last looked; null when it was not. */
  stepped_ms: number | null;
  since: number | null;
}

/** Operators: whether the wall clock is believed. */
export function getClockState(platform: Platform): ClockState {
  return platform.store.transact(readState);
}

function readState(tx: Tx): ClockState {
  const step = findStep(tx);
  return { held: step !== undefined, stepped_ms: step?.ms ?? null, since: step?.at ?? null };
}

/**
 * Operators: the wall clock is right as it is now. What is on its way gets its full time anew, for the old stamps are of
 * another time. Does nothing when nothing is held.
 */
export function confirmClock(platform: Platform, operator: Operator): ClockState {
  return platform.store.transact((tx) => {
    const step = findStep(tx);
    if (!step) return readState(tx);
    forgetStep(tx);
    tx.afterCommit(() => platform.clockSteps.confirmed());
    restartDeadlines(tx);
    restartExhaustionClocks(tx);
    recordAudit(tx, operator, 'clock.confirm', operator.userId, { stepped_ms: step.ms });
    return readState(tx);
  });
}
