import { minuteOf, spell } from './times.js';

const HOUR_MS = 3_600_000;
/** The API looks no further ahead for the end of a balance. */
const CENTURY_HOURS = 100 * 365 * 24;

/** A balance, what an hour charges (absent or null: not known), and when the balance is used up (null: not in sight). */
export interface Lasting {
  balanceMicro: number;
  chargedMicro?: number | null | undefined;
  until: string | null;
}

/** Says how long a balance lasts. What is charged can be known before its end is: no time is metered yet. */
export function lasting({ balanceMicro, chargedMicro, until }: Lasting, now: number): string {
  if (until !== null) {
    const left = Date.parse(until) - now;
    return left <= 0 ? 'used up' : `lasts ${spell(left)} (until ${minuteOf(until)})`;
  }
  if (!chargedMicro) return 'nothing is charged now';
  const hours = balanceMicro / chargedMicro;
  if (hours <= 0) return 'used up';
  return hours > CENTURY_HOURS ? 'lasts more than 100 years' : `lasts ${spell(hours * HOUR_MS)}`;
}
