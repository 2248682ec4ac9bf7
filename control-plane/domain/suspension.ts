import { DAY_MS, HOUR_MS } from '../../shared/time.js';

/** How many hours before its disks are destroyed a suspended organization is warned. */
const WARNED_HOURS = [1, 6, 24] as const;
/** A change of the days never leaves less time than this. */
const LEAST_MS = DAY_MS;

/** Returns until when disks are kept: some days from the suspension on, and at least a day from now. */
export function disksKeptUntil(suspendedAt: number, keepDays: number, now: number): number {
  return Math.max(suspendedAt + keepDays * DAY_MS, now + LEAST_MS);
}

/** Returns the hours of the warning that is due at a time; null: none is, or it was given already. `told` is the last one. */
export function suspensionWarning(until: number, told: number | null, now: number): number | null {
  const hours = WARNED_HOURS.find((step) => until - now <= step * HOUR_MS);
  return hours !== undefined && (told === null || hours < told) ? hours : null;
}
