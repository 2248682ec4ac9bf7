/** The last run of a workload that is down, from Docker, with times in ms since 1970. */
export interface ExitedRun {
  instanceId: string;
  startedAt: number;
  finishedAt: number;
}

/** A time in which Docker did not answer, in milliseconds since 1970. */
export interface Outage {
  from: number;
  to: number;
}

/** How long before its own end a Docker that shuts down can kill its containers. */
const SHUTDOWN_MS = 30_000;

/**
 * Tells whether an outage interrupted a run. The agent starts an interrupted workload again, but not one whose run ended by itself. If
 * the clock was set back meanwhile, that cannot be known, and every run counts as interrupted.
 */
export function wasKilledBy({ from, to }: Outage, { finishedAt }: ExitedRun): boolean {
  return to < from || (finishedAt >= from - SHUTDOWN_MS && finishedAt <= to);
}
