/** A run that has ended. */
export interface EndedRunEntry {
  instanceId: string;
  runId: string;
  /** How long it lasted. */
  ranMs: number;
  /** In milliseconds since 1970, by this host's clock. */
  endedAt: number;
}

/** Returns the name of a report as a message with ended runs. The name of a command's result is the command's id. */
export function nameOfReport({ instanceId, number }: { instanceId: string; number: number }): string {
  return `${instanceId} ${number}`;
}
