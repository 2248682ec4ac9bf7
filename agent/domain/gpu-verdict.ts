import { HOUR_MS, MINUTE_MS } from '../../shared/time.js';

/** What a test container with a GPU has shown. `reason`: why it did not start, or why none was tried. */
export type GpuTestResult =
  | { kind: 'passed'; reason: '' }
  | { kind: 'failed'; reason: string }
  | { kind: 'not tested'; reason: string };

export const notTested = (reason: string): GpuTestResult => ({ kind: 'not tested', reason });

/** What the tests of this host say together. Times are in milliseconds since 1970. */
export interface GpuVerdict {
  /** Why no container with a GPU starts; empty: this host takes new work. */
  fault: string;
  /** When the first of the latest tests in a row that contradict the verdict was made; null: the latest does not. */
  doubtedAt: number | null;
  /** When a fault was found last, and when one was gone last. */
  downAt: number | null;
  upAt: number | null;
}

export const UNTESTED: GpuVerdict = { fault: '', doubtedAt: null, downAt: null, upAt: null };

/** How far apart two failures must be: a passing trouble of Docker is over by then. */
const APART_MS = MINUTE_MS;
/** How long the verdict stays after a change in the same direction, and how long a single contradicting test counts. */
const LEAST_KEPT_MS = HOUR_MS;

/**
 * Returns the verdict after a test. Two failures at least a minute apart make a fault, and two successes end it, each with no other
 * result between; there is at most one change an hour in each direction.
 */
export function judgeGpuTest(verdict: GpuVerdict, result: GpuTestResult, now: number): GpuVerdict {
  const { fault } = verdict;
  if (result.kind === 'not tested') return verdict;
  const agrees = (result.kind === 'failed') === (fault !== '');
  if (agrees) return { ...verdict, fault: result.reason, doubtedAt: null };
  const doubtMs = agoMs(verdict.doubtedAt, now);
  if (doubtMs > LEAST_KEPT_MS) return { ...verdict, doubtedAt: now };
  const isClear = result.kind === 'passed' || doubtMs >= APART_MS;
  if (!isClear || agoMs(changedAt(verdict), now) < LEAST_KEPT_MS) return verdict;
  const changed = { ...verdict, fault: result.reason, doubtedAt: null };
  return fault === '' ? { ...changed, downAt: now } : { ...changed, upAt: now };
}

/** Returns in how many milliseconds this host must be tested again, after a test now; null: only when something asks for it. */
export function nextGpuTestMs(verdict: GpuVerdict, now: number): number | null {
  if (verdict.doubtedAt !== null) return Math.max(LEAST_KEPT_MS - agoMs(changedAt(verdict), now), APART_MS);
  return verdict.fault === '' ? null : HOUR_MS;
}

/** Returns when the verdict last changed in the direction in which the doubt would change it. */
function changedAt({ fault, downAt, upAt }: GpuVerdict): number | null {
  return fault === '' ? downAt : upAt;
}

/** Returns how long ago a time was; Infinity for none, and for one in the future, which a clock that was wrong has left. */
function agoMs(at: number | null, now: number): number {
  return at === null || at > now ? Infinity : now - at;
}
