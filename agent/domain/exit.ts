/** The last run of a workload that is down, as Docker has it. */
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

/** A Docker that shuts down kills its containers over as long a time before it is gone. */
const SHUTDOWN_MS = 30_000;

/**
 * Whether a run that is down after an outage went down with it: what was interrupted is brought back, what ended stays down.
 * Where the clock was set back meanwhile, nobody can tell, and everything did.
 */
export function wasKilledBy({ from, to }: Outage, { finishedAt }: ExitedRun): boolean {
  return to < from || (finishedAt >= from - SHUTDOWN_MS && finishedAt <= to);
}
