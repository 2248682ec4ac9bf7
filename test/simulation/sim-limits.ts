import { MINUTE_MS } from '../../shared/time.js';
import type { InstanceLimits } from '../../control-plane/domain/money/instance-limits.js';
import { Random } from './random.js';

/** Whether renters and admins limit what is spent in the world of a seed: in every second one. */
export function hasLimits(seed: number): boolean {
  return seed % 2 === 1;
}

/** The caps of the first organization, which has plenty, on the day, and of the second on the month. */
export const CAPS = [
  { day_micro: 100_000_000, month_micro: null },
  { day_micro: null, month_micro: 60_000_000 },
];

/** The limits that renters set, by random numbers of their own: the history of a seed does not depend on them otherwise. */
export class SimLimits {
  readonly random: Random;

  constructor(seed: number) {
    this.random = new Random(seed ^ 0x11417);
  }

  /** What a deploy says of limits. */
  next(now: number): Partial<InstanceLimits> {
    const { random } = this;
    return {
      ...(random.chance(0.4) ? { stop_at: now + random.between(5 * MINUTE_MS, 40 * MINUTE_MS) } : {}),
      ...(random.chance(0.5) ? { max_charge_micro: random.between(6_000_000, 30_000_000) } : {}),
      ...(random.chance(0.4) ? { idle_stop_minutes: random.pick([1, 8, 20]) ?? null } : {}),
      ...(random.chance(0.2) ? { on_limit: 'destroy' as const } : {}),
    };
  }
}
