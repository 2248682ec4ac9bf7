/** Words for times and durations. Times are ISO 8601 in UTC, durations are milliseconds. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** The API looks no further ahead for the end of a balance. */
const CENTURY = 100 * 365 * DAY;

const UNITS: readonly (readonly [number, string])[] = [
  [DAY, 'd'],
  [HOUR, 'h'],
  [MINUTE, 'min'],
  [SECOND, 's'],
];

/** Returns a duration in its two largest units, never longer than it is: `6 h 20 min`, `12 s`. No line breaks in it. */
export function duration(ms: number): string {
  const first = UNITS.findIndex(([unit]) => ms >= unit);
  if (first < 0) return unbroken('0 s');
  const [[unit, name], next] = [UNITS[first] ?? [SECOND, 's'], UNITS[first + 1]];
  const rest = next ? Math.floor((ms % unit) / next[0]) : 0;
  return unbroken(`${Math.floor(ms / unit)} ${name}${next && rest > 0 ? ` ${rest} ${next[1]}` : ''}`);
}

/** Returns the words with spaces at which no line breaks. */
function unbroken(words: string): string {
  return words.replaceAll(' ', '\u00a0');
}

/** Returns a duration with every millisecond that it has: `2 h 3 min 4.005 s`. */
export function exactDuration(ms: number): string {
  const [hours, minutes, seconds] = [Math.floor(ms / HOUR), Math.floor((ms % HOUR) / MINUTE), (ms % MINUTE) / SECOND];
  return `${hours > 0 ? `${hours} h ` : ''}${minutes > 0 ? `${minutes} min ` : ''}${seconds} s`;
}

/** Returns how far a time is from now, in its largest unit: `4 min ago`, `in 3 h`, `now`. */
export function relativeTime(at: string, now: number): string {
  const ms = Date.parse(at) - now;
  const distance = Math.abs(ms);
  if (distance < 5 * SECOND) return 'now';
  const [unit, name] = UNITS.find(([size]) => distance >= size) ?? [SECOND, 's'];
  const count = Math.floor(distance / unit);
  return ms < 0 ? `${count} ${name} ago` : `in ${count} ${name}`;
}

/** Returns for how long something has been so, in its largest unit: `for 44 min`, `just now`. */
export function lastingSince(at: string, now: number): string {
  const words = relativeTime(at, now);
  return words.endsWith(' ago') ? `for ${words.slice(0, -' ago'.length)}` : 'just now';
}

/** Returns a time with its second and its offset, in the time zone of the reader: `2026-11-24 22:58:03 GMT+1`. */
export function exactTime(at: string, timeZone?: string): string {
  const { year, month, day, hour, minute, second, timeZoneName } = partsOf(at, timeZone);
  return `${year}-${month}-${day} ${hour}:${minute}:${second} ${timeZoneName}`;
}

/** Returns the minute of a time, its day unless that is today, and its year unless that is this one: `14:20`, `Wed 14:20`, `3 Dec 2025 14:20`. */
export function shortTime(at: string, now: number, timeZone?: string): string {
  const { hour, minute, weekday, day, year } = partsOf(at, timeZone);
  const today = partsOf(new Date(now).toISOString(), timeZone);
  const clock = `${hour}:${minute}`;
  const distance = Math.abs(Date.parse(at) - now);
  if (day === today.day && distance < DAY) return clock;
  if (distance < 6 * DAY) return `${weekday} ${clock}`;
  return `${shortDay(at, timeZone)} ${year === today.year ? '' : `${year} `}${clock}`;
}

/** Returns the day of a time: `3 Dec`. */
export function shortDay(at: string, timeZone?: string): string {
  const { day, monthName } = partsOf(at, timeZone);
  return `${Number(day)} ${monthName}`;
}

/** Returns the words of a tick of an axis whose ticks are `stepSeconds` apart: `14:20`, or `3 Dec` where a day begins. */
export function tickName(seconds: number, stepSeconds: number, timeZone?: string): string {
  const at = new Date(seconds * 1_000).toISOString();
  const { hour, minute, second } = partsOf(at, timeZone);
  const clock = `${hour}:${minute}`;
  if (stepSeconds * SECOND >= DAY || `${clock}:${second}` === '00:00:00') return shortDay(at, timeZone);
  return stepSeconds * SECOND < MINUTE ? `${clock}:${second}` : clock;
}

const PARTS: Intl.DateTimeFormatOptions = {
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  weekday: 'short',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
  timeZoneName: 'short',
};
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** By time zone. To make a format takes much longer than to use it, and each time on a page is shown again every second. */
const formats = new Map<string | undefined, Intl.DateTimeFormat>();

function formatFor(timeZone: string | undefined): Intl.DateTimeFormat {
  const known = formats.get(timeZone);
  if (known) return known;
  const made = new Intl.DateTimeFormat('en-GB', { ...PARTS, ...(timeZone === undefined ? {} : { timeZone }) });
  formats.set(timeZone, made);
  return made;
}

function partsOf(at: string, timeZone?: string): Record<string, string> {
  const parts = Object.fromEntries(
    formatFor(timeZone)
      .formatToParts(new Date(at))
      .map(({ type, value }) => [type, value]),
  );
  return { ...parts, monthName: MONTHS[Number(parts['month']) - 1] ?? '' };
}

/** A balance, what one hour charges, and when the balance is used up; null: nothing is charged yet, or it lasts for a century. */
export interface Lasting {
  balanceMicro: number;
  chargedMicro: number;
  until: string | null;
}

/** Returns how long a balance lasts: `6 h 20 min`, `used up`, `more than 100 years`, `no charges`. */
export function lasts({ balanceMicro, chargedMicro, until }: Lasting, now: number): string {
  const ms = until === null ? paysFor(balanceMicro, chargedMicro) : Date.parse(until) - now;
  if (ms === undefined) return 'no charges';
  return ms <= 0 ? 'used up' : inSight(ms);
}

/** Returns how long a balance lasts that is not used up. */
export function inSight(ms: number): string {
  return ms > CENTURY ? 'more than 100 years' : duration(ms);
}

/** Returns for how many milliseconds an organization's balance pays what it is charged, and `moreMicro` an hour; undefined: for ever. */
export function lastsWith(
  organization: { balance_micro: number; charged_per_hour_micro?: number },
  moreMicro: number,
): number | undefined {
  return paysFor(organization.balance_micro, (organization.charged_per_hour_micro ?? 0) + moreMicro);
}

/** Returns for how many milliseconds a balance pays a charge per hour; undefined: for ever. It is never longer than what the money pays. */
export function paysFor(balanceMicro: number, perHourMicro: number): number | undefined {
  if (perHourMicro <= 0) return undefined;
  return balanceMicro <= 0 ? 0 : Number((BigInt(balanceMicro) * BigInt(HOUR)) / BigInt(perHourMicro));
}
