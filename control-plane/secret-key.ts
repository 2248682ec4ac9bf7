import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { SetupError } from '../shared/coded-error.js';
import { fileTroubleOf, requireWritableFolderOf } from '../shared/file-access.js';

const KEY_BYTES = 32;

/** Reads the key that encrypts secrets; creates one for a new database, with mode 0600. Throws SetupError. */
export function readSecretKey(file: string, database: string): Buffer {
  if (!existsSync(file) && existsSync(database)) {
    throw new SetupError(
      `${file} is missing: only that key decrypts the secrets in ${database}; restore the file; if it is lost for good, see "The key is lost" in docs/day-two.md`,
    );
  }
  if (!existsSync(file)) write(file, randomBytes(KEY_BYTES));
  return read(file);
}

/** Writes a new key beside the present one, which it will replace, and returns it. Throws SetupError. */
export function prepareNextKey(file: string): Buffer {
  const key = randomBytes(KEY_BYTES);
  requireWritableFolderOf(file);
  rmSync(nextOf(file), { force: true });
  write(nextOf(file), key);
  return key;
}

/**
 * Reads the key of an unfinished rotation. Returns undefined for a file that cannot be read: such a key has encrypted nothing.
 */
export function readNextKey(file: string): Buffer | undefined {
  try {
    return read(nextOf(file));
  } catch {
    return undefined;
  }
}

/** Replaces the key by the next one. Returns the file that keeps the old key, which older backups need. Throws SetupError. */
export function adoptNextKey(file: string, now: number): string {
  const kept = `${file}.before-${new Date(now).toISOString().replace(/[:.]/g, '-')}`;
  try {
    // Not a hard link: the kernel refuses one to a file of another user.
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
    // What a full disk has left of it would be taken for the key.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') rmSync(file, { force: true });
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
