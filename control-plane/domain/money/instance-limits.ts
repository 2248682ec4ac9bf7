import { MINUTE_MS } from '../../../shared/time.js';
import { charge } from './charge.js';

/** What a limit of an instance does when it is used up. */
export const ON_LIMIT = ['stop', 'destroy'] as const;
export type OnLimit = (typeof ON_LIMIT)[number];

/** The limits that a renter sets for one instance; null: none, and for `on_limit`: it stops. */
export interface InstanceLimits {
  /** Milliseconds since 1970. */
  stop_at: number | null;
  max_charge_micro: number | null;
  /** For how long it may be idle. */
  idle_stop_minutes: number | null;
  on_limit: OnLimit | null;
}

/**
 * What a limit must leave of GPU time when an instance is deployed or started, and while it is on its way: an instance can run for so long
 * before it is shown as running, and only then does a limit stop it.
 */
const LEAST_LEFT_MS = 5 * MINUTE_MS;

/** Tells whether an amount covers the GPU time that a limit must leave. */
export function leavesEnough(leftMicro: number, pricePerHourMicro: number): boolean {
  return leftMicro > 0 && leftMicro >= charge(pricePerHourMicro, LEAST_LEFT_MS);
}

/** Tells whether an instance with the limits `next` can cost more than with the limits `before`. */
export function areLooser(next: InstanceLimits, before: InstanceLimits): boolean {
  const isHigher = (name: 'stop_at' | 'max_charge_micro' | 'idle_stop_minutes') =>
    (next[name] ?? Infinity) > (before[name] ?? Infinity);
  if (isHigher('stop_at') || isHigher('max_charge_micro') || isHigher('idle_stop_minutes')) return true;
  // Once it is stopped, its disk goes on costing.
  return before.on_limit === 'destroy' && next.on_limit !== 'destroy';
}

/** Returns which limit of an instance leaves too little GPU time for a start; undefined: none. */
export function tooNearLimit(
  { stop_at, max_charge_micro }: Pick<InstanceLimits, 'stop_at' | 'max_charge_micro'>,
  { spend_micro, price_per_hour_micro }: { spend_micro: number; price_per_hour_micro: number },
  now: number,
): 'stop_at' | 'max_charge' | undefined {
  if (stop_at !== null && stop_at - now < LEAST_LEFT_MS) return 'stop_at';
  if (max_charge_micro !== null && !leavesEnough(max_charge_micro - spend_micro, price_per_hour_micro))
    return 'max_charge';
  return undefined;
}
