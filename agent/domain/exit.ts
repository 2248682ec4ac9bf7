/** The last run of a workload that is down, as Docker has it. */
export interface Ending {
  instanceId: string;
  startedAt: number;
  finishedAt: number;
}

/** What has gone away under workloads. */
export interface Losses {
  /** When the runs began, by instance, that were down when the host had booted. */
  beforeBoot: Readonly<Record<string, number>>;
  outages: readonly Outage[];
}

/**
 * Whether a workload that should run, and does not, was interrupted rather than ended: the host has booted since it was
 * started, or Docker was away around its end. What was interrupted is brought back; what ended stays down.
 */
export function wasInterrupted({ beforeBoot, outages }: Losses, ending: Ending): boolean {
  if (beforeBoot[ending.instanceId] === ending.startedAt) return true;
  return outages.some(({ from, to }) => ending.finishedAt >= from - SHUTDOWN_MS && ending.finishedAt <= to);
}

/** A time in which Docker did not answer, in milliseconds since 1970. */
export interface Outage {
  from: number;
  to: number;
}

/** A Docker that shuts down kills its containers over as long a time before it is gone. */
const SHUTDOWN_MS = 30_000;
