import type { Clock, Timer } from '../../../shared/clock.js';

/** The wall clock of the machine counts as set if it differs from the steady one by more than this. */
export const NOTICED_MS = 1_000;
/** Clocks that were read further apart say nothing of each other: the process was not running in between. */
const READ_WITHIN_MS = 10;
const MOST_READS = 5;

/**
 * A wall clock that goes on with the monotonic clock. It does not follow small steps of the machine's wall clock, such as time servers
 * make: nobody moves stored times by them, so a stop after one would be charged for up to later than it was asked for. Once the two
 * differ by more than {@link NOTICED_MS}, it takes the wall clock over, which {@link ClockStepDetector} then notices as one step.
 */
export class SteadyClock implements Clock {
  /** By how much the wall clock is ahead of the monotonic one. */
  private offset: number;

  constructor(private readonly machine: Clock) {
    this.offset = this.read().offset;
  }

  now(): number {
    const { offset, monotonic } = this.read();
    if (Math.abs(offset - this.offset) > NOTICED_MS) this.offset = offset;
    return Math.round(monotonic + this.offset);
  }

  monotonic(): number {
    return this.machine.monotonic();
  }

  schedule(delayMs: number, run: () => void): Timer {
    return this.machine.schedule(delayMs, run);
  }

  /** Goes on as another process of the same boot did, by its offset, unless the wall clock was set meanwhile. */
  goOnFrom(offset: number): void {
    if (Math.abs(this.read().offset - offset) <= NOTICED_MS) this.offset = offset;
  }

  private read(): { offset: number; monotonic: number } {
    for (let reads = 1; ; reads++) {
      const before = this.machine.monotonic();
      const wall = this.machine.now();
      const monotonic = this.machine.monotonic();
      if (monotonic - before <= READ_WITHIN_MS || reads === MOST_READS) return { offset: wall - monotonic, monotonic };
    }
  }
}
