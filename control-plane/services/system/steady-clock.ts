import type { Clock, Timer } from '../../../shared/clock.js';

/** The wall clock of the machine counts as set if it differs from the steady one by more than this. */
export const NOTICED_MS = 1_000;
/** Clocks that were read further apart say nothing of each other: the process was not running in between. */
const READ_WITHIN_MS = 10;
const MOST_READS = 5;

/**
 * A wall clock that goes on with the monotonic clock. It does not follow small steps of the machine's wall clock, such as time servers
 * make: nobody moves stored times by them, so a stop after one would be charged for up to later than it was asked for. Larger steps it
 * takes over when {@link ClockStepDetector} looks, which then moves the stored times by the same amount.
 */
export class SteadyClock implements Clock {
  /** By how much the wall clock is ahead of the monotonic one. */
  private offset: number;

  constructor(private readonly machine: Clock) {
    this.offset = this.readOffset();
  }

  now(): number {
    return Math.round(this.machine.monotonic() + this.offset);
  }

  monotonic(): number {
    return this.machine.monotonic();
  }

  schedule(delayMs: number, run: () => void): Timer {
    return this.machine.schedule(delayMs, run);
  }

  /** Goes on as another process of the same boot did, by its offset, unless the wall clock was set meanwhile. */
  goOnFrom(offset: number): void {
    if (Math.abs(Math.round(this.readOffset() - offset)) <= NOTICED_MS) this.offset = offset;
  }

  /**
   * Takes the machine's wall clock over if the two differ by more than {@link NOTICED_MS}, by whole milliseconds. Returns by how much
   * the wall clock is ahead of the monotonic one. Only who moves the stored times along may call it: a time between the two would be
   * charged.
   */
  follow(): number {
    const step = Math.round(this.readOffset() - this.offset);
    if (Math.abs(step) > NOTICED_MS) this.offset += step;
    return this.offset;
  }

  /** Reads by how much the machine's wall clock is ahead of its monotonic clock, in milliseconds. */
  private readOffset(): number {
    for (let reads = 1; ; reads++) {
      const before = this.machine.monotonic();
      const wall = this.machine.now();
      const monotonic = this.machine.monotonic();
      if (monotonic - before <= READ_WITHIN_MS || reads === MOST_READS) return wall - monotonic;
    }
  }
}
