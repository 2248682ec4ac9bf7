import { HOUR_MS } from '../../../shared/time.js';

/** The longest paid time. An agent that receives no message for so long stops its workloads, whatever the balance. */
const LONGEST_MS = 30 * 24 * HOUR_MS;

/** Returns for how long a balance in micro-dollars lasts at `perHourMicro`, in whole milliseconds. */
export function paidMs(balanceMicro: number, perHourMicro: number): number {
  if (balanceMicro <= 0) return 0;
  if (perHourMicro === 0) return LONGEST_MS;
  return Math.min(Math.floor((balanceMicro / perHourMicro) * HOUR_MS), LONGEST_MS);
}
