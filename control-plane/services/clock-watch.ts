import type { Clock } from '../../shared/clock.js';
import type { Logger } from '../../shared/logger.js';
import type { Operator } from '../domain/caller.js';
import { query } from '../store/sql.js';
import type { Store, Tx } from '../store/store.js';
import { recordAudit } from './audit.js';
import { restartDeadlines } from './instances/transitions.js';
import type { Platform } from './platform.js';

/** A wall clock that was set by more than this is not believed. */
const STEP_MS = 60_000;
const SEEN_EVERY_MS = 60_000;

export interface ClockState {
  /** Whether what cannot be taken back waits for an operator. */
  held: boolean;
  /** By how much the wall clock was set since an operator last looked; null when it was not. */
  stepped_ms: number | null;
  since: number | null;
}

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
    tx.run(query.deleteFrom('meta').where('key', '=', 'clock_step'));
    restartDeadlines(tx);
    recordAudit(tx, operator, 'clock.confirm', operator.userId, { stepped_ms: step.ms });
    return readState(tx);
  });
}

function recordStep(tx: Tx, ms: number): void {
  const earlier = findStep(tx);
  writeMeta(tx, 'clock_step', JSON.stringify({ at: earlier?.at ?? tx.now, ms: (earlier?.ms ?? 0) + ms }));
}

function findStep(tx: Tx): Step | undefined {
  const step = readMeta(tx, 'clock_step');
  return step === undefined ? undefined : (JSON.parse(step) as Step);
}

function readMeta(tx: Tx, key: string): string | undefined {
  return tx.get(query.selectFrom('meta').select('value').where('key', '=', key))?.value;
}

function writeMeta(tx: Tx, key: string, value: string): void {
  tx.run(
    query
      .insertInto('meta')
      .values({ key, value })
      .onConflict((conflict) => conflict.column('key').doUpdateSet({ value })),
  );
}
