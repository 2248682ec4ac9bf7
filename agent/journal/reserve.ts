import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, rmSync, statSync, truncateSync, writeSync } from 'node:fs';

/** What the journal of a host writes until somebody has made room on a full disk, many times over. */
export const RESERVE_BYTES = 4 * 1024 * 1024;
/** Given up at once: what is free on a full disk, others take, too. */
const STEP_BYTES = 512 * 1024;

/** A file that is nothing but room on a disk, to be given up in steps when the disk is full. */
export class Reserve {
  constructor(private readonly file: string) {}

  /** Takes as much as there is room for, up to {@link RESERVE_BYTES}. */
  fill(): void {
    const size = this.size();
    if (size >= RESERVE_BYTES) return;
    try {
      const file = openSync(this.file, 'a', 0o600);
      try {
        // Random, for a file system that compresses.
        writeSync(file, randomBytes(RESERVE_BYTES - size));
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
    } catch {
      // A full disk: what could be taken is taken.
    }
  }

  /** Makes some room. Returns false where nothing is left of it. */
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
