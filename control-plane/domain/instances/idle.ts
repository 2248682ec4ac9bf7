import type { Use } from '../../../shared/measurement.js';
import { MINUTE_MS } from '../../../shared/time.js';
import type { TimedUse } from './measurement.js';

/** A span without a gap in which every minute of an instance was measured and idle, in milliseconds since 1970. */
export interface IdleSpan {
  from: number;
  to: number;
}

const IDLE_GPU_PERCENT = 5;
const BUSY_CPU_SHARE = 0.1;
/** Between the ends of two minutes that are further apart, something was not measured. */
const MOST_APART_MS = 1.5 * MINUTE_MS;
/** A minute that ends so soon after another one is the same, sent again: its time is converted anew each time. */
const SAME_MS = MINUTE_MS / 2;
/** How long before an idle stop its renter is told. */
export const NOTICE_MS = 10 * MINUTE_MS;

/**
 * Tells whether an instance was idle in a minute: no GPU above 5 percent, CPU below 10 percent of its slice, no SSH session, and no
 * connection to a published port. What was not measured is not idle. `gpus`: how many the instance has; `hasPorts`: whether it publishes
 * ports besides SSH, because new connections are counted without their port.
 */
export function isIdle(use: Use, gpus: number, hasPorts: () => boolean): boolean {
  const { cpuMaxMillis, cpuLimitMillis, sshSessions, portConnections, connectionsOpened } = use;
  if (use.gpus.length !== gpus) return false;
  if (!use.gpus.every(({ useMaxPercent }) => useMaxPercent !== null && useMaxPercent <= IDLE_GPU_PERCENT)) return false;
  if (cpuMaxMillis === null || cpuLimitMillis === null) return false;
  if (cpuMaxMillis >= BUSY_CPU_SHARE * cpuLimitMillis) return false;
  if (sshSessions !== 0 || portConnections !== 0) return false;
  return connectionsOpened === 0 || !hasPorts();
}

/**
 * Returns the idle span after one more minute. A span neither begins before `since`, when the instance began to run, nor ends after `now`:
 * then the clock was set back. `isIdleThen`: whether the minute was idle.
 */
export function idleAfter(
  before: IdleSpan | null,
  { at }: Pick<TimedUse, 'at'>,
  isIdleThen: boolean,
  { since, now }: { since: number; now: number },
): IdleSpan | null {
  const span = before && before.from >= since && before.to <= now ? before : null;
  if (at <= since) return span;
  if (span && at <= span.from) return span;
  if (!isIdleThen) return null;
  if (span && at < span.to + SAME_MS) return { from: span.from, to: Math.max(at, span.to) };
  if (span && at - span.to <= MOST_APART_MS) return { from: span.from, to: at };
  return { from: Math.max(at - MINUTE_MS, since), to: at };
}

/**
 * Returns what follows from an idle span: that its renter is told, with the time of the stop, or that the instance is stopped now.
 * `stopsAt`: the time that the renter was told in this span; null: none. An old span says nothing about now.
 */
export function idleStep(
  { from, to }: IdleSpan,
  limitMs: number,
  stopsAt: number | null,
  now: number,
): { is: 'none' | 'stop' } | { is: 'tell'; stopsAt: number } {
  if (now - to > MOST_APART_MS) return { is: 'none' };
  const idleMs = to - from;
  if (stopsAt === null)
    return idleMs >= limitMs - NOTICE_MS
      ? { is: 'tell', stopsAt: Math.max(from + limitMs, now + NOTICE_MS) }
      : { is: 'none' };
  return { is: idleMs >= limitMs && now >= stopsAt ? 'stop' : 'none' };
}
