/** A run of a workload that has ended. */
export interface EndedRunEntry {
  instanceId: string;
  runId: string;
  /** For how long it lasted. */
  ranMs: number;
  /** In milliseconds since 1970, by this host's clock. */
  endedAt: number;
}

/** What a report is called among the messages that tell of ended runs; a command's result is called by the command's id. */
export function nameOfReport({ instanceId, number }: { instanceId: string; number: number }): string {
  return `${instanceId} ${number}`;
}
