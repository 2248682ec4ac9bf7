import type { Clock } from '../../shared/clock.js';
import type { Logger } from '../../shared/logger.js';
import { deleteMeta, readMeta, writeMeta } from '../store/meta.js';
import type { Store, Tx } from '../store/store.js';

/** A wall clock that was set by more than this is not believed. */
const STEP_MS = 60_000;
const SEEN_EVERY_MS = 60_000;

interface Step {
  at: number;
  ms: number;
}

/**
 * Holds the wall clock against the monotonic one. Nothing that cannot be taken back is decided upon a clock that was set by
 * more than a minute, until an operator has looked; the hold outlives the process.
 */
export class ClockWatch {
  private offset: number | undefined;
  private seenAt = -Infinity;

  constructor(
    private readonly store: Store,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  /** Whether durations by the wall clock may be acted upon. */
  isTrusted(): boolean {
    const step = Math.round(this.stepSinceLastLook());
    if (Math.abs(step) > STEP_MS) {
      this.logger.error(
        { steppedMs: step },
        'the wall clock was set; time-outs wait until an operator confirms it with POST /v1/operator/clock/confirm',
      );
      this.store.transact((tx) => recordStep(tx, step));
    }
    this.noteSeen();
    return this.store.transact((tx) => findStep(tx) === undefined);
  }

  private stepSinceLastLook(): number {
    const offset = this.clock.now() - this.clock.monotonic();
    const step = this.offset === undefined ? this.stepBackSinceLastRun() : offset - this.offset;
    this.offset = offset;
    return step;
  }

  /** How long a control plane was away is not known; that time does not run backwards is. */
  private stepBackSinceLastRun(): number {
    const seen = this.store.transact((tx) => readMeta(tx, 'clock_seen'));
    return seen === undefined ? 0 : Math.min(this.clock.now() - Number(seen), 0);
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
