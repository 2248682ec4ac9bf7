import { DAY_MS } from '../../../shared/time.js';
import type { Span } from './metered.js';

/** The time over which a cap counts what is spent. */
export const PERIODS = ['day', 'month'] as const;
export type Period = (typeof PERIODS)[number];

/** What a cap limits: what one hour would cost, or what is spent in a period. */
export const CAP_KINDS = ['burn_per_hour', ...PERIODS] as const;
export type CapKind = (typeof CAP_KINDS)[number];

/** The most that may be spent, in micro-dollars; null: no cap. */
export type Caps = Record<`${CapKind}_micro`, number | null>;

export const NO_CAPS = capsFrom(() => null);

/** Returns caps, each with what `microOf` gives for its kind. */
export function capsFrom(microOf: (kind: CapKind) => number | null): Caps {
  return Object.fromEntries(CAP_KINDS.map((kind) => [`${kind}_micro`, microOf(kind)])) as Caps;
}

export function isPeriod(kind: string): kind is Period {
  return PERIODS.some((period) => period === kind);
}

/** At which percent of a cap or limit its renters are told, each once. */
const TOLD_PERCENTS = [50, 80, 100] as const;

/** Returns the UTC day or calendar month of a time, in milliseconds since 1970. */
export function periodAt(period: Period, at: number): Span {
  if (period === 'day') {
    const from = Math.floor(at / DAY_MS) * DAY_MS;
    return { from, to: from + DAY_MS };
  }
  const date = new Date(at);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  return { from: Date.UTC(year, month, 1), to: Date.UTC(year, month + 1, 1) };
}

/** Returns the days or months that have a part of [from, to], the oldest first. */
export function periodsIn(period: Period, from: number, to: number): Span[] {
  const spans = [periodAt(period, from)];
  for (let last = spans[0]; last && last.to <= to;) {
    last = periodAt(period, last.to);
    spans.push(last);
  }
  return spans;
}

/** Returns the highest percent of a limit that has been reached and is worth telling; 0: none. */
export function percentReached(spentMicro: number, limitMicro: number): number {
  return TOLD_PERCENTS.findLast((percent) => spentMicro * 100 >= limitMicro * percent) ?? 0;
}
