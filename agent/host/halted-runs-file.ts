import { readFile } from 'node:fs/promises';
import { writeDurably } from './durable-file.js';

/**
 * Stores halted runs in a file beside the journal. A host that loses its journal must not report such an end as the workload's
 * own.
 */
export class HaltedRunsFile {
  constructor(private readonly file: string) {}

  /** Returns no runs where the file is missing or unreadable. */
  async read(): Promise<Record<string, number>> {
    try {
      return JSON.parse(await readFile(this.file, 'utf8')) as Record<string, number>;
    } catch {
      return {};
    }
  }

  write(runs: Record<string, number>): Promise<void> {
    return writeDurably(this.file, JSON.stringify(runs), 0o600);
  }
}
