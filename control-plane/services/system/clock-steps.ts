import type { Clock } from '../../../shared/clock.js';
import type { Logger } from '../../../shared/logger.js';
import { MINUTE_MS } from '../../../shared/time.js';
import { deleteMeta, readMeta, writeMeta } from '../../store/meta.js';
import type { Store, Tx } from '../../store/store.js';

/** A wall clock that was set by more than this is not believed. */
const STEP_MS = MINUTE_MS;
/** A wall clock that differs by more than this from the time that has passed was set. */
const NOTICED_MS = 1_000;
const SEEN_EVERY_MS = MINUTE_MS;
/** Who could not pay for so long, because there was no control plane, gets the full time anew. */
const ABSENCE_MS = 10 * MINUTE_MS;

/** What a change of the wall clock does to times that are stored. */
export interface ClockStepEffects {
  /** Moves what is not settled by the milliseconds by which the clock was set. */
  shift(tx: Tx, ms: number): void;
  /** Gives organizations with an empty balance their full time again, after nobody could pay for a while. */
  restartGrace(tx: Tx): void;
}

interface Step {
  at: number;
  ms: number;
}

/**
 * Holds the wall clock against the monotonic one, before each transaction. What is metered keeps its duration however the clock is
 * set. Nothing that cannot be taken back is decided upon a clock that was set by more than a minute, until an operator has
 * looked; the hold outlives the process.
 */
export class ClockStepDetector {
  private offset: number | undefined;
  private held: boolean | undefined;
  private seenAt = -Infinity;

  constructor(
    private readonly store: Store,
    private readonly clock: Clock,
    private readonly logger: Logger,
    private readonly effects: ClockStepEffects,
  ) {
    store.beforeEach = () => this.look();
  }

  /** Whether durations by the wall clock may be acted upon. */
  isTrusted(): boolean {
    this.look();
    this.noteSeen();
    this.held ??= this.store.transact((tx) => findStep(tx) !== undefined);
    return !this.held;
  }

  /** An operator has looked. */
  confirmed(): void {
    this.held = undefined;
  }

  private look(): void {
    const offset = this.clock.now() - this.clock.monotonic();
    const before = this.offset;
    this.offset = offset;
    try {
      this.compare(offset, before);
    } catch (error) {
      // What could not be noted now is noticed again.
      this.offset = before;
      throw error;
    }
  }

  private compare(offset: number, before: number | undefined): void {
    if (before === undefined) return this.lookBack();
    const step = Math.round(offset - before);
    if (Math.abs(step) > NOTICED_MS) this.note(step);
  }

  /** How long a control plane was away is not known; that time does not run backwards is. */
  private lookBack(): void {
    const seen = this.store.transact((tx) => readMeta(tx, 'clock_seen'));
    if (seen === undefined) return;
    const absence = this.clock.now() - Number(seen);
    if (absence < 0) this.note(absence);
    if (absence > ABSENCE_MS) this.store.transact((tx) => this.effects.restartGrace(tx));
  }

  private note(step: number): void {
    const isHeld = Math.abs(step) > STEP_MS;
    if (isHeld) {
      this.logger.error(
        { steppedMs: step },
        'the wall clock was set; what cannot be taken back waits until an operator confirms it with POST /v1/operator/clock/confirm',
      );
    }
    if (isHeld) this.held = undefined;
    this.store.transact((tx) => {
      this.effects.shift(tx, step);
      writeMeta(tx, 'clock_seen', String(tx.now));
      if (isHeld) recordStep(tx, step);
    });
  }

  private noteSeen(): void {
    if (this.clock.monotonic() - this.seenAt < SEEN_EVERY_MS) return;
    this.seenAt = this.clock.monotonic();
    this.store.transact((tx) => writeMeta(tx, 'clock_seen', String(tx.now)));
  }
}

function recordStep(tx: Tx, ms: number): void {
  const earlier = findStep(tx);
  writeMeta(tx, 'clock_step', JSON.stringify({ at: earlier?.at ?? tx.now, ms: (earlier?.ms ?? 0) + ms }));
}

/** What was not confirmed yet. */
export function findStep(tx: Tx): Step | undefined {
  const step = readMeta(tx, 'clock_step');
  return step === undefined ? undefined : (JSON.parse(step) as Step);
}

/** The clock is believed again. */
export function forgetStep(tx: Tx): void {
  deleteMeta(tx, 'clock_step');
}
