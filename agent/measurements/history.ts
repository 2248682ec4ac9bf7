import { summarize, type Use } from '../../shared/measurement.js';
import { HOUR_MS, MINUTE_MS } from '../../shared/time.js';
import { PointRing, type Point } from './ring.js';

const KEPT_POINTS = 360;
const KEPT_MINUTES = 60;
/** The minutes that are sent again after a connect: the control plane writes what it has heard within ten minutes. */
const AGAIN_MS = 12 * MINUTE_MS;

/** What an instance has used in a minute; `endedAt` in monotonic milliseconds. */
export interface Minute {
  endedAt: number;
  use: Use;
  isSent: boolean;
}

/** Keeps what one instance has used in the last hour: points of ten seconds, and minutes. */
export class History {
  private readonly ring: PointRing;
  /** The points since the last minute. */
  private open: Point[] = [];
  private minutes: Minute[] = [];
  private lastAt = -Infinity;

  constructor(readonly gpus: number) {
    this.ring = new PointRing(gpus, KEPT_POINTS);
  }

  /** When the newest point was measured, in monotonic milliseconds. */
  get newestAt(): number {
    return this.lastAt;
  }

  add(point: Point): void {
    this.ring.add(point);
    this.open.push(point);
    this.lastAt = point.at;
  }

  /** Ends the present minute, if anything was measured in it. */
  endMinute(): void {
    if (this.open.length === 0) return;
    this.minutes.push({ endedAt: this.lastAt, use: summarize(this.open.map(({ use }) => use)), isSent: false });
    this.minutes = this.minutes.slice(-KEPT_MINUTES);
    this.open = [];
  }

  /** Returns the oldest minutes that were not sent, at most `most`. */
  unsent(most: number): Minute[] {
    return this.minutes.filter(({ isSent }) => !isSent).slice(0, most);
  }

  /** Makes the last minutes be sent again: the control plane may have ended before it has written them. */
  sendAgain(now: number): void {
    for (const minute of this.minutes) if (now - minute.endedAt <= AGAIN_MS) minute.isSent = false;
  }

  /** Returns the points of the last hour, the oldest first. */
  points(now: number): Point[] {
    return this.ring.list().filter(({ at }) => now - at <= HOUR_MS);
  }
}
