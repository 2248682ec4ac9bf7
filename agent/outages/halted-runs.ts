import { readFile } from 'node:fs/promises';
import { writeDurably } from '../host/durable-file.js';

/** By instance: the `startedAt` of a run, in milliseconds since 1970. */
export type Runs = Record<string, number>;

/** Stores which runs this host has stopped because their paid time was over. */
export interface HaltedRuns {
  read(): Promise<Runs>;
  write(runs: Runs): Promise<void>;
}

/**
 * Stores halted runs in a file beside the journal. A host that loses its journal must not report such an end as the workload's
 * own.
 */
export class HaltedRunsFile implements HaltedRuns {
  constructor(private readonly file: string) {}

  /** Returns no runs where the file is missing or unreadable. */
  async read(): Promise<Runs> {
    try {
      return JSON.parse(await readFile(this.file, 'utf8')) as Runs;
    } catch {
      return {};
    }
  }

  write(runs: Runs): Promise<void> {
    return writeDurably(this.file, JSON.stringify(runs), 0o600);
  }
}
