/** A pending call made by {@link Clock.schedule}. */
export interface Timer {
  cancel(): void;
}

/** The only source of time in both programs, so that tests can control it. */
export interface Clock {
  /** Returns the wall clock: milliseconds since 1970 UTC. Can step. */
  now(): number;
  /**
   * Returns monotonic time, for durations: milliseconds since a fixed moment, the same one for all processes until the host boots.
   * Never steps back.
   */
  monotonic(): number;
  /** Calls `run` once after `delayMs` of monotonic time, unless cancelled. */
  schedule(delayMs: number, run: () => void): Timer;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => Number(process.hrtime.bigint()) / 1e6,
  schedule(delayMs, run) {
    const handle = setTimeout(run, delayMs);
    return { cancel: () => clearTimeout(handle) };
  },
};

/** Resolves after `delayMs`; rejects with the signal's reason when aborted first. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    const onAbort = () => {
      timer.cancel();
      reject(signal?.reason as Error);
    };
    const timer = clock.schedule(delayMs, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** Resolves to the value of `promise`, or to `onTimeout()` if it has not settled after `timeoutMs`. */
export async function withTimeout<T>(
  clock: Clock,
  timeoutMs: number,
  promise: Promise<T>,
  onTimeout: () => T,
): Promise<T> {
  let timer: Timer | undefined;
  const timeout = new Promise<T>((resolve, reject) => {
    timer = clock.schedule(timeoutMs, () => {
      try {
        resolve(onTimeout());
      } catch (error) {
        reject(error);
      }
    });
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    timer?.cancel();
  }
}
