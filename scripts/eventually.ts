import { setTimeout as pause } from 'node:timers/promises';

/** Most waits are over after a few milliseconds. A look at a page or a host costs processor time that what is waited for needs. */
const SHORTEST_INTERVAL_MS = 1;
const LONGEST_INTERVAL_MS = 100;
/** The part of the time waited so far after which it looks again. */
const LATENESS = 0.1;

/**
 * Polls `look` until its value is neither undefined nor false, and returns that value. Rejects after `timeoutMs` milliseconds with
 * an error that names `what`, and at once if `look` throws.
 */
export async function eventually<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = 30_000,
): Promise<T> {
  const begun = performance.now();
  const deadline = begun + timeoutMs;
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
    const waited = performance.now() - begun;
    await pause(Math.min(Math.max(LATENESS * waited, SHORTEST_INTERVAL_MS), LONGEST_INTERVAL_MS));
  }
  throw new Error(`gave up waiting for ${what}`, { cause });
}
