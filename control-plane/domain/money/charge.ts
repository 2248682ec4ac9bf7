import { HOUR_MS } from '../../../shared/time.js';

/**
 * Returns what `ms` milliseconds cost at a rate per hour, in micro-dollars: floor(rate x ms / 3,600,000). It is exact also where the
 * product exceeds the integers that a double can hold.
 */
export function charge(ratePerHourMicro: number, ms: number): number {
  const rest = ms % HOUR_MS;
  return ratePerHourMicro * ((ms - rest) / HOUR_MS) + ofPart(ratePerHourMicro, rest);
}

function ofPart(ratePerHourMicro: number, ms: number): number {
  const product = ratePerHourMicro * ms;
  if (!Number.isSafeInteger(product)) return Number((BigInt(ratePerHourMicro) * BigInt(ms)) / BigInt(HOUR_MS));
  return (product - (product % HOUR_MS)) / HOUR_MS;
}
