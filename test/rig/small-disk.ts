import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, rmdirSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MIB = Buffer.alloc(1024 * 1024);

/** A file system of its own, in memory, that can be filled and made larger. Needs root. */
export class SmallDisk {
  readonly path = mkdtempSync(join(tmpdir(), 'gpurent-disk-'));
  private readonly ballast = join(this.path, 'ballast');

  /** `size` as mount has it, such as 8m. It takes memory for what is written alone. */
  constructor(size: string) {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=700`, 'gpurent-test', this.path]);
  }

  resize(size: string): void {
    execFileSync('mount', ['-o', `remount,size=${size}`, this.path]);
  }

  /** Somebody else writes until nothing is left. */
  fill(): void {
    const file = openSync(this.ballast, 'a');
    try {
      for (;;) writeSync(file, MIB);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    } finally {
      closeSync(file);
    }
  }

  /** Somebody else writes until less than so much is left. */
  fillUpTo(leftBytes: number): void {
    const file = openSync(this.ballast, 'a');
    while (this.freeBytes() >= leftBytes) writeSync(file, MIB);
    closeSync(file);
  }

  private freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.path);
    return bavail * bsize;
  }

  makeRoom(): void {
    rmSync(this.ballast);
  }

  remove(): void {
    execFileSync('umount', ['--lazy', this.path]);
    rmdirSync(this.path);
  }
}
