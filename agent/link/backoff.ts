const FIRST_MS = 500;
const LONGEST_MS = 10_000;
/** No control plane can keep a host away for longer. */
const LONGEST_ADVISED_MS = 60_000;

/** Returns the delay in ms before the next attempt to connect, after `attempts` failures in a row; `random` in [0, 1) spreads the hosts. */
export function retryDelayMs(attempts: number, random: number): number {
  const ceiling = Math.min(FIRST_MS * 2 ** Math.min(attempts, 10), LONGEST_MS);
  return Math.round(ceiling * (0.5 + random / 2));
}

/**
 * Returns the delay in ms before dialing again after a stream has ended whose welcome asked to spread the hosts over `spreadMs`; 0: it
 * did not.
 */
export function spreadDelayMs(spreadMs: number, random: number): number {
  return Math.max(retryDelayMs(0, random), Math.round(Math.min(spreadMs, LONGEST_ADVISED_MS) * random));
}

/** Returns the delay in ms after a refusal that asked to wait for `advisedMs`, which is spread over half as long again. */
export function advisedDelayMs(advisedMs: number, random: number): number {
  return Math.round(Math.min(advisedMs, LONGEST_ADVISED_MS) * (1 + random / 2));
}
