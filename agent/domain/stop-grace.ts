/** A second of grace for this many seconds that the run has lasted. */
const RUN_PER_GRACE = 30;

/** How long a workload of a kind may take to end once it was asked to, in seconds. */
export interface GraceLimits {
  leastGraceS: number;
  graceS: number;
}

/**
 * The grace of one stop, in whole seconds. The time between the request and the end is not charged, so it is a share of what
 * was: whoever starts and stops all day gets no GPU time for nothing.
 */
export function graceOf(ranMs: number, { leastGraceS, graceS }: GraceLimits): number {
  return Math.min(Math.max(Math.floor(ranMs / 1000 / RUN_PER_GRACE), leastGraceS), graceS);
}
