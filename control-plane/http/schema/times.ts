import { invalidField } from '../../domain/refusal.js';

/** Parses an RFC 3339 time into ms since 1970. Refuses a leap second, which the `date-time` format accepts and `Date` does not. */
export function timeOf(path: string, text: string): number {
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw invalidField(path, 'must be a time that exists, such as 2026-01-31T12:00:00Z');
  return time;
}
