import { minuteOf, spell } from './times.js';

/**
 * Says how long a balance lasts that is used up `until` then. Null: nothing is charged yet, or it lasts for a century; a control plane of
 * an earlier release does not say what an hour charges.
 */
export function lasting(until: string | null, now: number, chargedMicro: number | null = 0): string {
  if (until === null) return chargedMicro ? 'lasts more than 100 years' : 'nothing is charged now';
  const left = Date.parse(until) - now;
  return left <= 0 ? 'used up' : `lasts ${spell(left)} (until ${minuteOf(until)})`;
}
