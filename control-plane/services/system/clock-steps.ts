import type { Clock } from '../../../shared/clock.js';
import type { Logger } from '../../../shared/logger.js';
import { MINUTE_MS } from '../../../shared/time.js';
import { LEAST_WITNESSES, contradiction } from '../../domain/machines/clock-difference.js';
import { GRACE_MS } from '../../domain/deadlines.js';
import type { AgentConnections } from '../connections/agent-connections.js';
import { deleteMeta, readMeta, writeMeta } from '../../store/meta.js';
import type { Store, Tx } from '../../store/store.js';
import { NOTICED_MS, type SteadyClock } from './steady-clock.js';

/** A clock step larger than this pauses what cannot be undone. */
const STEP_MS = MINUTE_MS;
const SEEN_EVERY_MS = MINUTE_MS;
/** After a control plane was away for longer than this, organizations without a balance get their full time to pay again. */
const ABSENCE_MS = 10 * MINUTE_MS;

const PAUSED =
  'time-outs and automatic destroys are paused until an operator checks the clock and calls POST /v1/operator/clock/confirm';
const AGAINST_STORE = 'the wall clock is behind the database, which has a later time';
const AGAINST_HOSTS = 'most hosts that are connected say that the wall clock of the control plane is';

/** The changes that a clock step or an absence makes to stored times. */
export interface ClockStepEffects {
  /** Moves stored times that are not settled yet by the milliseconds of the clock step. */
  shift(tx: Tx, ms: number): void;
  /** Forgets before when no run can have begun: by how much such a time is wrong now is not known. */
  forgetFloors(tx: Tx): void;
  /** Restarts the time until automatic destruction of organizations without a balance: for a while they could not pay. */
  restartGrace(tx: Tx): void;
}

/** What the clocks of the hosts say; null: no host is asked. */
export type ClockWitnesses = Pick<AgentConnections, 'expected' | 'hostClocks'> | null;

interface Step {
  at: number;
  ms: number;
}

/**
 * Compares the wall clock with the monotonic clock before each transaction. It shifts metered time by each clock step, so that its
 * duration stays right. A step of more than a minute pauses every decision that cannot be undone until an operator confirms the
 * clock. The pause outlives the process. Two minutes after its start, the clocks of the hosts that are connected are compared with
 * it: if most of them contradict it by more than a minute, it pauses the same. Until then, it also does nothing that cannot be undone
 * after a boot of the machine: then nothing else tells whether the clock went ahead.
 */
export class ClockStepDetector {
  private offset: number | undefined;
  private held: boolean | undefined;
  private seenAt = -Infinity;
  private readonly startedAt: number;
  private isJudged: boolean;
  /** Whether only the hosts can tell that the clock is right, because the machine was booted since it was seen last. */
  private isUnproven = false;

  constructor(
    private readonly store: Store,
    private readonly clock: Clock & Partial<Pick<SteadyClock, 'goOnFrom' | 'follow'>>,
    private readonly logger: Logger,
    private readonly effects: ClockStepEffects,
    /** The id of this boot of the machine: the monotonic clock goes on until it changes. Null: not known. */
    private readonly bootId: string | null = null,
    private readonly witnesses: ClockWitnesses = null,
  ) {
    this.startedAt = clock.monotonic();
    this.isJudged = witnesses === null;
    store.beforeEach = () => this.look();
  }

  /** Tells whether decisions that cannot be undone can rely on the wall clock. */
  isTrusted(): boolean {
    this.look();
    this.noteSeen();
    if (!this.isJudged && this.clock.monotonic() - this.startedAt >= GRACE_MS) this.judge();
    if (this.isUnproven && !this.isJudged && (this.witnesses?.expected ?? 0) >= LEAST_WITNESSES) return false;
    this.held ??= this.store.transact((tx) => findStep(tx) !== undefined);
    return !this.held;
  }

  /** Reads the pause from the database again, after an operator has confirmed the clock. */
  confirmed(): void {
    this.held = undefined;
  }

  /** Compares the clock with those of the hosts, once: a clock that an operator has confirmed is not doubted again. */
  private judge(): void {
    const clocks = this.witnesses?.hostClocks() ?? [];
    const ms = contradiction(clocks, STEP_MS);
    if (ms !== null) {
      this.store.transact((tx) => recordStep(tx, ms));
      this.held = undefined;
      this.logger.error(
        { aheadMs: ms, hosts: clocks.length },
        `${AGAINST_HOSTS} ${Math.round(Math.abs(ms) / 1_000)} seconds ${ms > 0 ? 'ahead' : 'behind'}; ${PAUSED}`,
      );
    }
    this.isJudged = true;
  }

  private look(): void {
    const offset = this.clock.follow?.() ?? this.clock.now() - this.clock.monotonic();
    const before = this.offset;
    this.offset = offset;
    try {
      this.compare(offset, before);
    } catch (error) {
      // The step could not be stored: keep the old offset, so that the next look notices it again.
      this.offset = before;
      throw error;
    }
  }

  private compare(offset: number, before: number | undefined): void {
    if (before === undefined) return this.lookBack(offset);
    const step = Math.round(offset - before);
    if (Math.abs(step) > NOTICED_MS) this.note(step);
  }

  /**
   * Checks the first reading of a process. In the same boot as the process before, its monotonic clock tells the step. Otherwise the
   * length of the absence is unknown, but time cannot have gone backwards.
   */
  private lookBack(offset: number): void {
    const seen = this.store.transact((tx) => readMeta(tx, 'clock_seen'));
    if (seen === undefined) return;
    const base = this.readBase();
    this.isUnproven = base === undefined;
    const step = base === undefined ? 0 : Math.round(offset - base);
    const absence = this.clock.now() - step - Number(seen);
    const isStep = Math.abs(step) > NOTICED_MS;
    if (isStep) this.note(step);
    else if (absence < 0) this.note(absence, false);
    if (base !== undefined) this.goOnFrom(base + (isStep ? step : 0));
    if (absence > ABSENCE_MS) this.store.transact((tx) => this.effects.restartGrace(tx));
  }

  /** Keeps the time of the process before, which a small step since then does not change, to the fraction of a millisecond. */
  private goOnFrom(base: number): void {
    this.clock.goOnFrom?.(base);
    this.offset = this.clock.follow?.() ?? this.clock.now() - this.clock.monotonic();
  }

  /** Notes a step; `isExact`: its size is known, and not only the least that it can be. */
  private note(step: number, isExact = true): void {
    const isHeld = Math.abs(step) > STEP_MS;
    if (isHeld) {
      this.logger.error(
        { steppedMs: step },
        isExact ? `the wall clock was set by more than a minute; ${PAUSED}` : `${AGAINST_STORE}; ${PAUSED}`,
      );
    }
    if (isHeld) this.held = undefined;
    this.store.transact((tx) => {
      this.effects.shift(tx, step);
      if (!isExact) this.effects.forgetFloors(tx);
      this.writeSeen(tx);
      if (isHeld) recordStep(tx, step);
    });
  }

  private noteSeen(): void {
    if (this.clock.monotonic() - this.seenAt < SEEN_EVERY_MS) return;
    this.seenAt = this.clock.monotonic();
    this.store.transact((tx) => this.writeSeen(tx));
  }

  private writeSeen(tx: Tx): void {
    writeMeta(tx, 'clock_seen', String(tx.now));
    if (this.bootId === null) return;
    const offset = this.offset ?? tx.now - this.clock.monotonic();
    writeMeta(tx, 'clock_base', JSON.stringify({ bootId: this.bootId, offset }));
  }

  /** Returns by how much the wall clock was ahead of the monotonic clock of this boot when it was last seen; undefined: not known. */
  private readBase(): number | undefined {
    const stored = this.store.transact((tx) => readMeta(tx, 'clock_base'));
    if (stored === undefined) return undefined;
    const { bootId, offset } = JSON.parse(stored) as { bootId: string; offset: number };
    return bootId === this.bootId ? offset : undefined;
  }
}

function recordStep(tx: Tx, ms: number): void {
  const earlier = findStep(tx);
  writeMeta(tx, 'clock_step', JSON.stringify({ at: earlier?.at ?? tx.now, ms: (earlier?.ms ?? 0) + ms }));
}

/** Returns the sum of all clock steps that no operator has confirmed yet (`ms`), and the time of the first (`at`). */
export function findStep(tx: Tx): Step | undefined {
  const step = readMeta(tx, 'clock_step');
  return step === undefined ? undefined : (JSON.parse(step) as Step);
}

/** Ends the pause: an operator has confirmed the clock. */
export function forgetStep(tx: Tx): void {
  deleteMeta(tx, 'clock_step');
}
