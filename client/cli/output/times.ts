import { usageError } from '../errors/cli-error.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const UNITS: Readonly<Record<string, number>> = { s: SECOND, m: MINUTE, h: HOUR, d: DAY, w: 7 * DAY };

/** Returns a duration (`90m`, `4h`, `1d12h`) in milliseconds. Throws a usage error for anything else. */
export function durationOf(text: string): number {
  const parts = [...text.trim().matchAll(/(\d{1,6})([smhdw])/g)];
  const ms = parts.reduce((sum, [, count, unit = '']) => sum + Number(count) * (UNITS[unit] ?? 0), 0);
  if (parts.map(([part]) => part).join('') !== text.trim() || ms === 0)
    throw usageError(`"${text}" is not a duration`, 'Give it like 90m, 4h or 1d12h.');
  return ms;
}

/** Says how long a time is, in its two largest units. */
export function spell(ms: number): string {
  if (ms < MINUTE) return `${Math.max(0, Math.floor(ms / SECOND))} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < 2 * DAY) return two(ms, HOUR, 'h', MINUTE, 'min');
  return two(ms, DAY, 'days', HOUR, 'h');
}

function two(ms: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = Math.floor((ms % large) / small);
  return `${Math.floor(ms / large)} ${largeName}${rest > 0 ? ` ${rest} ${smallName}` : ''}`;
}

/** Says how long ago a time of the API was; null: a dash. */
export const ago = (at: string | null, now: number): string =>
  at === null ? '-' : `${spell(now - Date.parse(at))} ago`;

/** Says a time of the API to the minute, in UTC; null: a dash. */
export const minuteOf = (at: string | null): string => (at === null ? '-' : `${at.slice(0, 16).replace('T', ' ')} UTC`);
