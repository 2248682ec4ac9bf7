const FIRST_MS = 500;
const LONGEST_MS = 10_000;

/** Returns the delay in ms before the next attempt to connect, after `attempts` failures in a row; `random` in [0, 1) spreads the hosts. */
export function retryDelayMs(attempts: number, random: number): number {
  const ceiling = Math.min(FIRST_MS * 2 ** Math.min(attempts, 10), LONGEST_MS);
  return Math.round(ceiling * (0.5 + random / 2));
}
