import type { Clock, Timer } from '../../shared/clock.js';

interface Scheduled {
  at: number;
  run: () => void;
}

/** Set, every test begins then: so a night runs all of them as if it were just before midnight at the end of a month. */
const GIVEN = process.env['TEST_NOW'];
const START = momentOf(GIVEN ?? '2026-01-01T00:00:00.000Z');

/** The present of tests that show it, in milliseconds since 1970: no day and no month ends within hours of it. */
export const NOON = momentOf(GIVEN ?? '2026-01-15T12:00:00.000Z');

/** Time that moves only when a test moves it. */
export class ManualClock implements Clock {
  private elapsed = 0;
  private readonly scheduled = new Set<Scheduled>();

  constructor(private wall = START) {}

  now(): number {
    return this.wall;
  }

  monotonic(): number {
    return this.elapsed;
  }

  schedule(delayMs: number, run: () => void): Timer {
    const entry = { at: this.elapsed + delayMs, run };
    this.scheduled.add(entry);
    return { cancel: () => void this.scheduled.delete(entry) };
  }

  /** Moves wall and monotonic time together and runs what falls due, in order. */
  advance(ms: number): void {
    const end = this.elapsed + ms;
    for (;;) {
      const [next] = [...this.scheduled].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at);
      if (!next) break;
      this.moveTo(next.at);
      this.scheduled.delete(next);
      next.run();
    }
    this.moveTo(end);
  }

  /** Somebody sets the wall clock. */
  step(ms: number): void {
    this.wall += ms;
  }

  /** Calls that wait for time to pass. */
  get waiting(): number {
    return this.scheduled.size;
  }

  private moveTo(at: number): void {
    this.wall += at - this.elapsed;
    this.elapsed = at;
  }
}

function momentOf(text: string): number {
  const moment = Date.parse(text);
  if (Number.isNaN(moment)) throw new Error(`TEST_NOW is no moment: ${text}`);
  return moment;
}
