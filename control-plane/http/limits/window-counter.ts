import type { Clock } from '../../../shared/clock.js';
import { recent } from '../../../shared/recent.js';

/** A bound on memory; of more keys, those that were seen longest ago start again. */
const MOST_KEYS = 20_000;

interface Window {
  endsAt: number;
  count: number;
}

/** Counts events per key. The window of a key starts with its first event. */
export class WindowCounter {
  private readonly windows = recent<Window>(MOST_KEYS);

  constructor(
    private readonly clock: Pick<Clock, 'monotonic'>,
    private readonly windowMs: number,
    private readonly most: number,
  ) {}

  /** Counts an event. Returns the seconds until the window ends (at least 1) if it has too many, otherwise 0. */
  count(key: string): number {
    const now = this.clock.monotonic();
    let window = this.windows.get(key);
    if (!window || window.endsAt <= now) {
      window = { endsAt: now + this.windowMs, count: 0 };
      this.windows.set(key, window);
    }
    window.count += 1;
    return window.count <= this.most ? 0 : Math.ceil((window.endsAt - now) / 1000);
  }
}
