import { setImmediate } from 'node:timers/promises';
import type { Clock, Timer } from '../../shared/clock.js';

interface Event {
  at: number;
  order: number;
  owner: ProcessHandle;
  run: () => void;
}

/** What a program's timers and messages hang on: when it ends, nothing of it happens any more. */
export class ProcessHandle {
  alive = true;
}

/** More events than this at one moment are a circle. */
const MAX_TOGETHER = 20_000;

/** The one queue of everything that is to happen, in the order of its time. */
export class Timeline {
  now = 0;
  private readonly events: Event[] = [];
  private order = 0;

  schedule(owner: ProcessHandle, delayMs: number, run: () => void): Timer {
    const event = { at: this.now + Math.max(delayMs, 0), order: this.order++, owner, run };
    this.insert(event);
    return {
      cancel: () => {
        event.run = () => {};
      },
    };
  }

  /** Lets everything happen that falls due within `ms`; what each event sets off settles before the next one. */
  async advance(ms: number): Promise<void> {
    const end = this.now + ms;
    let together = 0;
    for (;;) {
      const event = this.events[0];
      if (!event || event.at > end) break;
      this.events.shift();
      together = event.at > this.now ? 0 : together + 1;
      if (together > MAX_TOGETHER) throw new Error(`time stands still: ${event.run.toString()}`);
      this.now = Math.max(this.now, event.at);
      if (!event.owner.alive) continue;
      event.run();
      await settle();
    }
    this.now = end;
  }

  private insert(event: Event): void {
    let [low, high] = [0, this.events.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.events[middle];
      if (other && (other.at < event.at || (other.at === event.at && other.order < event.order))) low = middle + 1;
      else high = middle;
    }
    this.events.splice(low, 0, event);
  }
}

/** Until no promise has anything left to say. */
export async function settle(): Promise<void> {
  await setImmediate();
}

/** A program's view of time; its wall clock can be wrong. */
export class SimClock implements Clock {
  /** How far the wall clock is from true time, in milliseconds. */
  constructor(
    private readonly timeline: Timeline,
    private readonly owner: ProcessHandle,
    private readonly wall: { offset: number },
  ) {}

  now(): number {
    return EPOCH_MS + this.timeline.now + this.wall.offset;
  }

  monotonic(): number {
    return this.timeline.now;
  }

  schedule(delayMs: number, run: () => void): Timer {
    return this.timeline.schedule(this.owner, delayMs, run);
  }
}

export const EPOCH_MS = Date.parse('2026-01-01T00:00:00.000Z');
