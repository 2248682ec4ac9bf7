import type { Installation } from './installation.js';

/** A way in which an alert comes to fire, and what the guide says to do then. */
export interface AlertCase {
  how: string;
  /** Whether an agent is looked at, too. */
  agent?: boolean;
  /** How often Prometheus scrapes, in milliseconds; otherwise every half second. */
  everyMs?: number;
  /** What the alert says, whole. */
  summary: RegExp;
  /** Other alerts that fire rightly. */
  also?: readonly string[];
  /** The expression looks back for longer than a test may take: alert-times.test.ts sees it end. */
  lasts?: boolean;
  /** Brings the condition about. The answer follows the guide. */
  provoke(installation: Installation): Promise<() => Promise<void>>;
}

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
