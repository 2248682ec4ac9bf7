/** A run gets one second of grace for each of this many seconds that it has lasted. */
const RUN_PER_GRACE = 30;

/** The limits of the grace of one kind of workload, in seconds. */
export interface GraceLimits {
  leastGraceS: number;
  graceS: number;
}

/**
 * Returns the grace of one stop, in whole seconds. The grace is not charged, so it is a share of the charged time: a renter who starts
 * and stops all day must not get free GPU time.
 */
export function graceOf(ranMs: number, { leastGraceS, graceS }: GraceLimits): number {
  return Math.min(Math.max(Math.floor(ranMs / 1000 / RUN_PER_GRACE), leastGraceS), graceS);
}
