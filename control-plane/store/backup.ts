import BetterSqlite3 from 'better-sqlite3';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { SetupError, messageOf } from '../../shared/coded-error.js';
import { readSettingsText, type CopiedSetting } from '../domain/copied-settings.js';
import { migrations } from './migrations/index.js';
import { fileTroubleOf, requireReadable, requireWritableFolderOf } from '../../shared/file-access.js';
import { isBusy, lockFile, writeCopy } from './open.js';
import { incomingOf } from './store.js';

/**
 * Copies the database, as it is at one moment, into a new file; works while a control plane runs on it. Throws SetupError when
 * `to` exists or the copy fails.
 */
export function backUp(file: string, to: string): void {
  if (!existsSync(file)) throw new SetupError(`there is no database ${file}; set GPURENT_DATABASE`);
  requireReadable(file);
  requireWritableFolderOf(to);
  if (existsSync(to)) throw new SetupError(`${to} exists; give the name of a new file`);
  copy(file, to);
}

/** How a backup is restored. */
export interface RestoreOptions {
  /** Whether the next start takes settings that protect less than those of the backup. */
  acceptsSettings?: boolean;
  /** Whether the control plane is to reach nothing outside: the restore is tried out. */
  isDrill?: boolean;
}

/** What a restore has done. */
export interface Restored {
  epoch: number;
  /** The file with the database that was there before; null: there was none. */
  replaced: string | null;
  /** The settings that the backup lists; null: an older release made it. */
  settings: CopiedSetting[] | null;
}

/**
 * Replaces the database by a backup and raises the epoch above every epoch that hosts can have seen, so that they refuse an older
 * copy. Keeps the old database as the file `replaced`. Throws SetupError, without any change, when a control plane holds the
 * database or the backup is not one.
 */
export function restore(from: string, file: string, now: number, options: RestoreOptions = {}): Restored {
  requireReadable(from);
  requireWritableFolderOf(file);
  const lock = lockFile(`${file}.lock`);
  try {
    const incoming = incomingOf(file);
    rmSync(incoming, { force: true });
    copy(from, incoming);
    const stamped = stamp(incoming, now, existsSync(file) ? epochOf(file) : 0, options);
    return { ...stamped, replaced: exchange(incoming, file, now) };
  } catch (error) {
    if (error instanceof SetupError) throw error;
    throw new SetupError(`${file} cannot be replaced: ${fileTroubleOf(error)}`, { cause: error });
  } finally {
    lock.close();
  }
}

function copy(from: string, to: string): void {
  try {
    const source = new BetterSqlite3(from, { readonly: true, timeout: 5_000 });
    try {
      judge(source);
      writeCopy(source, to);
    } finally {
      source.close();
    }
  } catch (error) {
    rmSync(to, { force: true });
    throw new SetupError(`${from} cannot be copied to ${to}: ${fileTroubleOf(error)}`, { cause: error });
  }
}

function judge(database: BetterSqlite3.Database): void {
  const version = versionOf(database);
  if (version === 0 || version > migrations.length) {
    throw new Error(`it is not a gpurent database that this release knows (schema ${version} of ${migrations.length})`);
  }
  const health = database.pragma('integrity_check', { simple: true });
  if (health !== 'ok') throw new Error(`it is damaged: ${String(health)}`);
}

/** Marks the copy as restored and sets an epoch above every one that hosts can have seen. */
function stamp(
  file: string,
  now: number,
  above: number,
  { acceptsSettings = false, isDrill = false }: RestoreOptions,
): Omit<Restored, 'replaced'> {
  const database = new BetterSqlite3(file);
  try {
    const raise = database.prepare<[number], { epoch: number }>(
      "UPDATE meta SET value = CAST(max(CAST(value AS INTEGER), ?) + 1 AS TEXT) WHERE key = 'epoch' RETURNING CAST(value AS INTEGER) AS epoch",
    );
    const epoch = raise.get(Math.max(now, above))?.epoch;
    if (epoch === undefined) throw new Error('the backup has no epoch');
    const set = database.prepare(
      'INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
    );
    set.run('restored_at', String(now));
    // Numbers of events that the backup lacks are given again.
    set.run('event_epoch', String(epoch));
    if (acceptsSettings) database.exec(FORGET_UNACCEPTED);
    else set.run('settings_unaccepted', '1');
    // The copy can be one of a drill.
    if (isDrill) set.run('drill', String(now));
    else database.exec("DELETE FROM meta WHERE key = 'drill'");
    const { resync, exhausted } = namesIn(database);
    database.exec(`UPDATE machines SET ${resync} = 1`);
    // An organization with an exhausted balance gets the full time to pay again.
    database.prepare(`UPDATE organizations SET ${exhausted} = ? WHERE ${exhausted} IS NOT NULL`).run(now);
    // Its renter may have lifted the limit since the backup. What is destroyed nobody can bring back.
    if (versionOf(database) >= WITH_LIMITS)
      database.exec("UPDATE instances SET on_limit = 'stop' WHERE on_limit = 'destroy'");
    const listed = database.prepare<[], { value: string }>("SELECT value FROM meta WHERE key = 'settings'").get();
    return { epoch, settings: readSettingsText(listed?.value) };
  } finally {
    database.close();
  }
}

const FORGET_UNACCEPTED = "DELETE FROM meta WHERE key = 'settings_unaccepted'";

/** Lets the next start take settings that protect less than those of the restored backup. Throws SetupError while a daemon runs. */
export function acceptSettings(file: string): void {
  requireReadable(file);
  const lock = lockFile(`${file}.lock`);
  try {
    const database = new BetterSqlite3(file);
    database.exec(FORGET_UNACCEPTED);
    database.close();
  } catch (error) {
    throw new SetupError(`${file} cannot be written: ${fileTroubleOf(error)}`, { cause: error });
  } finally {
    lock.close();
  }
}

/** The schema version that has limits of instances. */
const WITH_LIMITS = 17;

function versionOf(database: BetterSqlite3.Database): number {
  return database.pragma('user_version', { simple: true }) as number;
}

/**
 * Returns two column names, which migration 0010 renamed: a copy of an older release keeps its schema until a daemon opens it.
 */
function namesIn(database: BetterSqlite3.Database): { resync: string; exhausted: string } {
  return versionOf(database) < 10
    ? { resync: 'is_ahead', exhausted: 'low_since' }
    : { resync: 'needs_resync', exhausted: 'exhausted_since' };
}

/**
 * Reads the certificate of the control plane's authority, in PEM; works while a control plane runs. Throws SetupError if there is
 * none.
 */
export function readAuthority(file: string): string {
  try {
    const database = new BetterSqlite3(file, { readonly: true });
    try {
      const find = database.prepare<[], { value: string }>(
        "SELECT value FROM meta WHERE key = 'authority_certificate'",
      );
      const pem = find.get()?.value;
      if (pem === undefined) throw new Error('the control plane creates it at its first start with TLS');
      return pem;
    } finally {
      database.close();
    }
  } catch (error) {
    throw new SetupError(`${file} has no certificate of an authority: ${messageOf(error)}`, { cause: error });
  }
}

/** Returns the epoch of the database that will be replaced; 0 if it cannot be read. */
function epochOf(file: string): number {
  try {
    const database = new BetterSqlite3(file, { readonly: true });
    try {
      const find = database.prepare<[], { epoch: number }>(
        "SELECT CAST(value AS INTEGER) AS epoch FROM meta WHERE key = 'epoch'",
      );
      return find.get()?.epoch ?? 0;
    } finally {
      database.close();
    }
  } catch {
    return 0;
  }
}

/**
 * Moves each file by one rename, so that no crash leaves a database without its last commits. Returns the name of the old one.
 */
function exchange(incoming: string, file: string, now: number): string | null {
  if (!existsSync(file)) {
    renameSync(incoming, file);
    return null;
  }
  foldLog(file);
  const replaced = `${file}.before-${new Date(now).toISOString().replace(/[:.]/g, '-')}`;
  renameSync(file, replaced);
  try {
    renameSync(incoming, file);
  } catch (error) {
    renameSync(replaced, file);
    throw error;
  }
  return replaced;
}

/**
 * Moves the write-ahead log into the database file. Leaves a file that is not a database, as after a disaster, as it is. Throws
 * SetupError while another program has the database open: its last commits are in the log alone.
 */
function foldLog(file: string): void {
  try {
    const database = new BetterSqlite3(file, { timeout: 0 });
    try {
      database.pragma('journal_mode = DELETE');
    } finally {
      database.close();
    }
  } catch (error) {
    if (isBusy(error)) {
      throw new SetupError(`another program has ${file} open, such as Litestream: stop it first`, { cause: error });
    }
    for (const suffix of ['-wal', '-shm']) rmSync(file + suffix, { force: true });
  }
}
