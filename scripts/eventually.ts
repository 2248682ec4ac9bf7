import { setTimeout as pause } from 'node:timers/promises';

/** Most waits are over after a few milliseconds: the first looks are that soon after one another, then ever later. */
const FIRST_INTERVAL_MS = 1;
const INTERVAL_MS = 10;
/** What is awaited may be late on a busy machine: then that is no fault. */
const PATIENCE_MS = 110_000;
/** Waits that are given a longer timeout poll less often. */
const LONG_MS = 30_000;
const LONG_INTERVAL_MS = 100;

/**
 * Polls `look` until its value is neither undefined nor false, and returns that value. Rejects after `timeoutMs` milliseconds, or
 * nearly two minutes, with an error that names `what`, and at once if `look` throws.
 */
export async function eventually<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs?: number,
): Promise<T> {
  const deadline = performance.now() + (timeoutMs ?? PATIENCE_MS);
  const longest = timeoutMs !== undefined && timeoutMs > LONG_MS ? LONG_INTERVAL_MS : INTERVAL_MS;
  let interval = FIRST_INTERVAL_MS;
  let cause: unknown;
  for (;;) {
    // A machine that has stood still lets its deadline pass between two looks: the last look begins after it.
    const isLast = performance.now() >= deadline;
    try {
      const value = await look();
      if (value !== undefined && value !== false) return value;
    } catch (error) {
      cause = error;
      break;
    }
    if (isLast) break;
    await pause(interval);
    interval = Math.min(2 * interval, longest);
  }
  throw new Error(`gave up waiting for ${what}`, { cause });
}
