import { vi } from 'vitest';

/** The first value of `look` that is neither undefined nor false; fails, saying what it waited for, when none comes. */
export async function eventually<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = 30_000,
): Promise<T> {
  let found: T | undefined;
  await vi
    .waitUntil(
      async () => {
        const value = await look();
        if (value === undefined || value === false) return false;
        found = value;
        return true;
      },
      { timeout: timeoutMs, interval: timeoutMs > 30_000 ? 100 : 10 },
    )
    .catch((error: unknown) => {
      throw new Error(`waited in vain for ${what}`, { cause: error });
    });
  return found as T;
}
