import { minuteOf, spell } from './times.js';

/** Says how long a balance lasts; null: nothing is charged. */
export function lasting(until: string | null, now: number): string {
  if (until === null) return 'nothing is charged now';
  const left = Date.parse(until) - now;
  return left <= 0 ? 'used up' : `lasts ${spell(left)} (until ${minuteOf(until)})`;
}
