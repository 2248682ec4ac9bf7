import { randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

const OTHERS = 0o077;

/** Writes a file that only its owner can read: whole, or not at all. */
export function writePrivate(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const next = `${file}.${randomUUID()}`;
  try {
    writeFileSync(next, text, { mode: 0o600, flag: 'wx' });
    renameSync(next, file);
  } catch (error) {
    rmSync(next, { force: true });
    throw error;
  }
}

/** Returns the text of a file; undefined if there is none. Takes the rights of others away, and says so with `onMended`. */
export function readPrivate(file: string, onMended: (mode: string) => void = () => undefined): string | undefined {
  try {
    const mode = statSync(file).mode & 0o777;
    if ((mode & OTHERS) !== 0) {
      chmodSync(file, 0o600);
      onMended(mode.toString(8));
    }
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
