import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, rmSync, statSync, truncateSync, writeSync } from 'node:fs';

/** The size of the reserve: many times what the journal writes until the host owner frees space on a full disk. */
export const RESERVE_BYTES = 4 * 1024 * 1024;
/** How much one step frees. Small, because other programs also use the space that becomes free on a full disk. */
const STEP_BYTES = 512 * 1024;

/** A file that only occupies disk space; the agent frees it in steps when the disk is full. */
export class Reserve {
  constructor(private readonly file: string) {}

  /** Grows the file to {@link RESERVE_BYTES}, or as far as the disk allows. */
  fill(): void {
    const size = this.size();
    if (size >= RESERVE_BYTES) return;
    try {
      const file = openSync(this.file, 'a', 0o600);
      try {
        // Random bytes, because some file systems compress.
        writeSync(file, randomBytes(RESERVE_BYTES - size));
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
    } catch {
      // The disk is full; the file keeps what was written.
    }
  }

  /** Frees one step. Returns false if nothing is left to free, or if freeing failed. */
  release(): boolean {
    const size = this.size();
    if (size === 0) return false;
    try {
      if (size <= STEP_BYTES) rmSync(this.file);
      else truncateSync(this.file, size - STEP_BYTES);
      return true;
    } catch {
      return false;
    }
  }

  private size(): number {
    return statSync(this.file, { throwIfNoEntry: false })?.size ?? 0;
  }
}
