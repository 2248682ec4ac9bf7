import { HOUR_MS } from '../../shared/time.js';

/** A host that hears nothing for so long brings its workloads down, whatever the balance. */
const LONGEST_MS = 30 * 24 * HOUR_MS;

/** How long a balance in micro-dollars lasts at so many micro-dollars an hour, in whole milliseconds. */
export function paidMs(balanceMicro: number, perHourMicro: number): number {
  if (balanceMicro <= 0) return 0;
  if (perHourMicro === 0) return LONGEST_MS;
  return Math.min(Math.floor((balanceMicro / perHourMicro) * HOUR_MS), LONGEST_MS);
}
