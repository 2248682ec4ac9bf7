import { closeSync, openSync, readSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { parseFailure, type FailedUpgrade } from '../domain/upgrade.js';
import { writeDurably } from '../host/durable-file.js';

const MOST_BYTES = 16 * 1024;

/** The latest upgrade that has failed, in a file: it outlives the agent, and the upgrade unit writes it, too. */
export class FailureFile {
  constructor(private readonly path: string) {}

  /** Returns undefined if there is none, or none that can be read. */
  read(): FailedUpgrade | undefined {
    try {
      const file = openSync(this.path, 'r');
      try {
        const buffer = Buffer.alloc(MOST_BYTES);
        return parseFailure(buffer.toString('utf8', 0, readSync(file, buffer)));
      } finally {
        closeSync(file);
      }
    } catch {
      return undefined;
    }
  }

  async write(failure: FailedUpgrade): Promise<void> {
    await mkdir(dirname(this.path), { recursive: true, mode: 0o700 });
    await writeDurably(this.path, `${JSON.stringify(failure)}\n`, 0o600);
  }

  remove(): Promise<void> {
    return rm(this.path, { force: true });
  }
}
