import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, rmSync, statSync, truncateSync, writeSync } from 'node:fs';
import { MIB } from './bytes.js';

/** A file that only occupies disk space; a program frees it in steps when the disk is full. */
export class DiskReserve {
  constructor(
    private readonly file: string,
    /** How much one step frees. Small, because other programs also use the space that becomes free on a full disk. */
    private readonly stepBytes: number,
  ) {}

  /** Grows the file to `bytes`, or as far as the disk allows. Returns whether it has that size. */
  growTo(bytes: number): boolean {
    try {
      const file = openSync(this.file, 'a', 0o600);
      try {
        // Random bytes, because some file systems compress.
        for (let missing = bytes - this.size; missing > 0; missing = bytes - this.size)
          writeSync(file, randomBytes(Math.min(missing, MIB)));
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
      return true;
    } catch {
      // The disk is full; the file keeps what was written.
      return false;
    }
  }

  /** Frees one step. Returns false if nothing is left to free, or if freeing failed. */
  release(): boolean {
    const { size } = this;
    if (size === 0) return false;
    try {
      if (size <= this.stepBytes) rmSync(this.file);
      else truncateSync(this.file, size - this.stepBytes);
      return true;
    } catch {
      return false;
    }
  }

  get size(): number {
    return statSync(this.file, { throwIfNoEntry: false })?.size ?? 0;
  }
}
