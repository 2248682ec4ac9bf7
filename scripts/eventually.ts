import { setTimeout as pause } from 'node:timers/promises';

const INTERVAL_MS = 10;
/** Waits with a longer timeout poll less often. */
const LONG_MS = 30_000;
const LONG_INTERVAL_MS = 100;

/**
 * Polls `look` until its value is neither undefined nor false, and returns that value. Rejects after `timeoutMs` milliseconds with
 * an error that names `what`, and at once if `look` throws.
 */
export async function eventually<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = LONG_MS,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let cause: unknown;
  do {
    try {
      const value = await look();
      if (value !== undefined && value !== false) return value;
    } catch (error) {
      cause = error;
      break;
    }
    await pause(timeoutMs > LONG_MS ? LONG_INTERVAL_MS : INTERVAL_MS);
  } while (performance.now() < deadline);
  throw new Error(`gave up waiting for ${what}`, { cause });
}
