/** What Docker says of a container that is not running. */
export interface Ending {
  startedAt: number;
  finishedAt: number;
}

/**
 * Whether a workload that should run, and does not, was interrupted rather than ended: the host has booted since it was
 * started, or Docker was away around its end. What was interrupted is brought back; what ended stays down.
 */
export function wasInterrupted(facts: { bootedAt: number; outages: readonly Outage[] }, ending: Ending): boolean {
  if (ending.startedAt < facts.bootedAt) return true;
  return facts.outages.some(({ from, to }) => ending.finishedAt >= from - SHUTDOWN_MS && ending.finishedAt <= to);
}

/** A time in which Docker did not answer, in milliseconds since 1970. */
export interface Outage {
  from: number;
  to: number;
}

/** A Docker that shuts down kills its containers over as long a time before it is gone. */
const SHUTDOWN_MS = 30_000;
