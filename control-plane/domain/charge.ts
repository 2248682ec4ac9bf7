import { HOUR_MS } from '../../shared/time.js';

/**
 * What `ms` milliseconds cost at a rate an hour: floor(rate x ms / 3,600,000), in micro-dollars. Exact also where the product is
 * beyond what a double holds.
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
