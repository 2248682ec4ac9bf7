/** A run that has ended. */
export interface EndedRunEntry {
  instanceId: string;
  runId: string;
  /** How long it lasted. */
  ranMs: number;
  /** In milliseconds since 1970, by this host's clock. */
  endedAt: number;
  /** The same in monotonic milliseconds; undefined: it began before this boot. */
  endedMs?: number | undefined;
}

/** When a run of this boot began, as the agent has found when it first saw it. */
export interface RunStart {
  startedAt: number;
  /** In monotonic milliseconds, which go on from one process of the agent to the next. */
  beganAt: number;
  /** By how much Docker's clock was ahead of the monotonic clock when the run was last seen up, in milliseconds. */
  wallOffset: number;
}

/** Returns the name of a report as a message with ended runs. The name of a command's result is the command's id. */
export function nameOfReport({ instanceId, number }: { instanceId: string; number: number }): string {
  return `${instanceId} ${number}`;
}
