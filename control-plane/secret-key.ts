import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { SetupError } from '../shared/coded-error.js';
import { fileTroubleOf, requireWritableFolderOf } from '../shared/file-access.js';

const KEY_BYTES = 32;

/** Reads the key that seals secrets; makes one for a new database, readable by its owner alone. Throws SetupError. */
export function readSecretKey(file: string, database: string): Buffer {
  if (!existsSync(file) && existsSync(database)) {
    throw new SetupError(
      `${file} is missing: the secrets in ${database} open with that key alone: put it back; where it is lost for good, see "The key is lost" in docs/day-two.md`,
    );
  }
  if (!existsSync(file)) write(file, randomBytes(KEY_BYTES));
  return read(file);
}

/** A new key beside the one in use, which it is to replace. */
export function prepareNextKey(file: string): Buffer {
  const key = randomBytes(KEY_BYTES);
  requireWritableFolderOf(file);
  rmSync(nextOf(file), { force: true });
  write(nextOf(file), key);
  return key;
}

/** The key of a replacement that was begun and not finished; one that was cut short itself is none, and sealed nothing. */
export function readNextKey(file: string): Buffer | undefined {
  try {
    return read(nextOf(file));
  } catch {
    return undefined;
  }
}

/** Puts the next key in the place of the one before, which is kept under the name that is answered: older backups open with it. */
export function adoptNextKey(file: string, now: number): string {
  const kept = `${file}.before-${new Date(now).toISOString().replace(/[:.]/g, '-')}`;
  try {
    // No link: of a file that belongs to somebody else the kernel makes none.
    writeFileSync(kept, readFileSync(file), { mode: 0o600, flag: 'wx', flush: true });
    renameSync(nextOf(file), file);
  } catch (error) {
    throw unusable(file, error);
  }
  return kept;
}

function nextOf(file: string): string {
  return `${file}.next`;
}

function write(file: string, key: Buffer): void {
  try {
    writeFileSync(file, `${key.toString('hex')}\n`, { mode: 0o600, flag: 'wx', flush: true });
  } catch (error) {
    throw unusable(file, error);
  }
}

function read(file: string): Buffer {
  try {
    const text = readFileSync(file, 'utf8').trim();
    if (!/^[0-9a-f]{64}$/i.test(text)) throw new Error('it does not hold 64 hexadecimal digits');
    return Buffer.from(text, 'hex');
  } catch (error) {
    throw unusable(file, error);
  }
}

function unusable(file: string, error: unknown): SetupError {
  return new SetupError(`GPURENT_SECRET_KEY_FILE ${file} cannot be used: ${fileTroubleOf(error)}`, { cause: error });
}
