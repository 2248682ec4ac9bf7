import BetterSqlite3 from 'better-sqlite3';
import { chmodSync, closeSync, existsSync, fsyncSync, openSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { SetupError } from '../../shared/coded-error.js';
import { fileTroubleOf } from '../../shared/file-access.js';
import type { Migration } from './migrations/index.js';

/** The pragmas that every open checks. */
export const SETTINGS = { journal_mode: 'wal', synchronous: 2, foreign_keys: 1 };
/** Requests wait during a checkpoint: a larger one would block them for longer than a settlement does. */
const CHECKPOINT_BYTES = 4 * 1024 * 1024;
/** The log of a database that Litestream copies: above it, Litestream has ended, and the disk is worth more than the copy. */
const LITESTREAM_LOG_BYTES = 1024 * 1024 * 1024;
const PAGE_BYTES = 4096;
/** Pages that are read again and again stay in memory: SQLite's own 2 MiB are too few for a marketplace of some size. */
const CACHE_KIB = 32 * 1024;
export const BUSY_MS = 5_000;

/** Takes a lock that the kernel releases when the process ends, even by a crash. Throws SetupError. */
export function lockFile(file: string): BetterSqlite3.Database {
  try {
    const lock = new BetterSqlite3(file, { timeout: 0 });
    // A journal file would need room on a full disk.
    lock.pragma('journal_mode = MEMORY');
    lock.exec('BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    if (!isBusy(error)) throw new SetupError(`cannot write ${file}: ${fileTroubleOf(error)}`, { cause: error });
    const running = `another control plane is running on this database (it holds ${file})`;
    throw new SetupError(`${running}: stop it first, an installed one by "systemctl stop gpurent-control-plane"`, {
      cause: error,
    });
  }
}

/** Tells whether another connection holds the database. */
export function isBusy(error: unknown): boolean {
  return error instanceof BetterSqlite3.SqliteError && error.code === 'SQLITE_BUSY';
}

/**
 * Opens the database. On a disk without any room there is no place for what processes share: then it is opened for this process alone,
 * which can at least read it.
 */
export function openDatabase(
  file: string,
  litestream: boolean,
): { connection: BetterSqlite3.Database; isShared: boolean } {
  try {
    return { connection: open(file, litestream, 'NORMAL'), isShared: true };
  } catch (error) {
    if (!(error instanceof BetterSqlite3.SqliteError && error.code === 'SQLITE_IOERR_SHMSIZE')) throw error;
    return { connection: open(file, litestream, 'EXCLUSIVE'), isShared: false };
  }
}

/** Lets other processes use a database that was opened for this one alone. SQLite does that only in another journal mode. */
export function shareAgain(connection: BetterSqlite3.Database): void {
  try {
    connection.pragma('journal_mode = DELETE');
    connection.pragma('locking_mode = NORMAL');
  } finally {
    connection.pragma('journal_mode = WAL');
  }
}

function open(file: string, litestream: boolean, lockingMode: 'NORMAL' | 'EXCLUSIVE'): BetterSqlite3.Database {
  const connection = new BetterSqlite3(file, { timeout: BUSY_MS });
  try {
    configure(connection, file, litestream, lockingMode);
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

function configure(
  connection: BetterSqlite3.Database,
  file: string,
  litestream: boolean,
  lockingMode: 'NORMAL' | 'EXCLUSIVE',
): void {
  connection.pragma(`locking_mode = ${lockingMode}`);
  // Regardless of the umask. SQLite gives the files beside it the same mode.
  chmodSync(file, 0o600);
  connection.pragma('journal_mode = WAL');
  connection.pragma('synchronous = FULL');
  connection.pragma('foreign_keys = ON');
  connection.pragma(`wal_autocheckpoint = ${(litestream ? LITESTREAM_LOG_BYTES : CHECKPOINT_BYTES) / PAGE_BYTES}`);
  connection.pragma(`cache_size = -${CACHE_KIB}`);
  // Shrinks a log that grew while a slow reader was open.
  connection.pragma(`journal_size_limit = ${CHECKPOINT_BYTES}`);
  // A re-opened WAL file can have a weaker setting than the one requested.
  for (const [name, expected] of Object.entries(SETTINGS)) {
    const actual = connection.pragma(name, { simple: true });
    if (actual !== expected) throw new Error(`${name} is ${String(actual)}, not ${expected}`);
  }
}

/** Applies each of `steps` once, in order; copies the database before. */
export function migrate(connection: BetterSqlite3.Database, file: string, steps: readonly Migration[]): void {
  const version = connection.pragma('user_version', { simple: true }) as number;
  if (version > steps.length) {
    const before = `${file}.schema-${steps.length}`;
    const back = existsSync(before)
      ? `, or restore what it was before ("gpurent-control-plane restore ${before}")`
      : '';
    throw new Error(
      `it was written by a newer release (schema ${version}, this one knows ${steps.length}): install that release again${back}`,
    );
  }
  if (version > 0 && version < steps.length) copyBefore(connection, `${file}.schema-${version}`);
  steps.slice(version).forEach(({ sql }, index) => {
    connection
      .transaction(() => {
        connection.exec(sql);
        connection.pragma(`user_version = ${version + index + 1}`);
      })
      .exclusive();
  });
}

/**
 * Copies the database before a migration, for a return to the older release by its `restore`. Replaces the copy of an earlier
 * attempt.
 */
function copyBefore(connection: BetterSqlite3.Database, copy: string): void {
  rmSync(copy, { force: true });
  writeCopy(connection, copy);
}

/** Copies a database into a new file with mode 0600 and syncs it to the disk. */
export function writeCopy(connection: BetterSqlite3.Database, copy: string): void {
  connection.prepare('VACUUM INTO ?').run(copy);
  chmodSync(copy, 0o600);
  for (const path of [copy, dirname(copy)]) {
    const file = openSync(path, 'r');
    fsyncSync(file);
    closeSync(file);
  }
}
