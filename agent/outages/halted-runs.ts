/** By instance: the `startedAt` of a run, in milliseconds since 1970. */
export type Runs = Record<string, number>;

/** Stores which runs this host has stopped because their paid time was over. */
export interface HaltedRuns {
  read(): Promise<Runs>;
  write(runs: Runs): Promise<void>;
}
