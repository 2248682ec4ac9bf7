import { setTimeout as pause } from 'node:timers/promises';

/** What is awaited may be late on a busy machine: then that is no fault. */
const PATIENCE_MS = 110_000;
/** Most waits are over after a few milliseconds. A look can cost as much as a request, so those who wait long look ever more seldom. */
const FIRST_INTERVAL_MS = 1;
const INTERVAL_PER_WAITED = 0.1;
const LONGEST_INTERVAL_MS = 100;

/**
 * Polls `look` until its value is neither undefined nor false, and returns that value. Rejects after `timeoutMs` milliseconds, or
 * nearly two minutes, with an error that names `what`, and at once if `look` throws.
 */
export async function eventually<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs?: number,
): Promise<T> {
  const start = performance.now();
  const deadline = start + (timeoutMs ?? PATIENCE_MS);
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
    await pause(intervalAfter(performance.now() - start));
  }
  throw new Error(`gave up waiting for ${what}`, { cause });
}

/** Returns how long to wait until the next look, in ms. */
function intervalAfter(waitedMs: number): number {
  return Math.min(Math.max(FIRST_INTERVAL_MS, INTERVAL_PER_WAITED * waitedMs), LONGEST_INTERVAL_MS);
}
