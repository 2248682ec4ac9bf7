import BetterSqlite3 from 'better-sqlite3';
import { dirname } from 'node:path';
import { SetupError, messageOf } from '../../shared/coded-error.js';
import { MIB } from '../../shared/bytes.js';
import { DiskReserve } from '../../shared/disk-reserve.js';

type Database = BetterSqlite3.Database;

/** Pages of 4 KiB after which SQLite writes the WAL back, so that the WAL stays far smaller than the reserve. */
const CHECKPOINT_PAGES = 128;
/** The size of the reserve: many times what the journal writes until the host owner frees space on a full disk. */
export const RESERVE_BYTES = 4 * MIB;
const STEP_BYTES = MIB / 2;

/**
 * The journal's database. If its disk refuses a write, the agent frees the reserve. If that does not help, the agent continues with a
 * copy in memory, reports that with {@link obstacle}, and writes the copy back once the disk accepts it.
 */
export class JournalStorage {
  private readonly disk: Database;
  private readonly reserve: DiskReserve;
  private memory: Database | undefined;
  private isWriting = false;
  private reason = '';

  /** Opens the file and applies each of `migrations` once, in order. Throws SetupError if the file cannot be used. */
  constructor(
    private readonly file: string,
    private readonly migrations: readonly string[],
  ) {
    this.reserve = new DiskReserve(`${file}.reserve`, STEP_BYTES);
    try {
      this.disk = this.withReserve(() => this.open());
    } catch (error) {
      const busy = error instanceof BetterSqlite3.SqliteError && error.code === 'SQLITE_BUSY';
      throw new SetupError(
        busy
          ? `another agent is running on this host (it holds ${file})`
          : `the journal ${file} cannot be used: ${messageOf(error)}`,
      );
    }
  }

  /** The database to read from: the copy in memory, if there is one. */
  get db(): Database {
    return this.memory ?? this.disk;
  }

  /** Why writes are only in memory, and what to do about it; empty: all data is on the disk. */
  get obstacle(): string {
    if (!this.memory) return '';
    return `the journal of this host cannot be written (${this.reason}): make room in ${dirname(this.file)}, or repair its disk`;
  }

  /** Runs `work` in a transaction; a nested call joins the outer transaction. */
  write<T>(work: () => T): T {
    if (this.isWriting) return work();
    this.isWriting = true;
    try {
      const attempt = () => this.db.transaction(work).immediate();
      try {
        return this.memory ? attempt() : this.withReserve(attempt);
      } catch (error) {
        if (this.memory || !isOfDisk(error)) throw error;
        this.memory = this.copy();
        this.reason = messageOf(error);
        return attempt();
      }
    } finally {
      this.isWriting = false;
    }
  }

  /** Writes the copy in memory back to the disk and refills the reserve. Throws while the disk refuses it. */
  restore(): void {
    this.writeBack();
    this.reserve.growTo(RESERVE_BYTES);
  }

  close(): void {
    try {
      this.writeBack();
    } catch {
      // The control plane and Docker's labels have the lost data.
    }
    this.memory?.close();
    this.disk.close();
  }

  private writeBack(): void {
    const { memory } = this;
    if (!memory) return;
    this.withReserve(() => this.disk.transaction(() => copyRows(memory, this.disk)).immediate());
    memory.close();
    this.memory = undefined;
  }

  private open(): Database {
    const db = new BetterSqlite3(this.file, { timeout: 0 });
    try {
      db.pragma('locking_mode = EXCLUSIVE');
      db.pragma('journal_mode = WAL');
      db.pragma('synchronous = FULL');
      if (db.pragma('synchronous', { simple: true }) !== 2) throw new Error('synchronous is not FULL');
      db.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
      this.migrate(db);
      return db;
    } catch (error) {
      db.close();
      throw error;
    }
  }

  private migrate(db: Database): void {
    db.transaction(() => {
      const version = db.pragma('user_version', { simple: true }) as number;
      const { length } = this.migrations;
      if (version > length)
        throw new Error(`a newer release has written it (version ${version}): install that release again`);
      if (version === length) return;
      for (const sql of this.migrations.slice(version)) db.exec(sql);
      db.pragma(`user_version = ${length}`);
    }).exclusive();
  }

  private copy(): Database {
    const memory = new BetterSqlite3(':memory:');
    this.migrate(memory);
    copyRows(this.disk, memory);
    return memory;
  }

  private withReserve<T>(work: () => T): T {
    for (;;) {
      try {
        return work();
      } catch (error) {
        if (!isOfDisk(error) || !this.reserve.release()) throw error;
      }
    }
  }
}

/** Replaces the rows of all tables of `to` by those of `from`. */
function copyRows(from: Database, to: Database): void {
  const tables = from.prepare<[], { name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  for (const { name } of tables) {
    to.exec(`DELETE FROM ${name}`);
    const rows = from.prepare<[], Record<string, unknown>>(`SELECT * FROM ${name}`).all();
    const columns = Object.keys(rows[0] ?? {});
    if (columns.length === 0) continue;
    const insert = to.prepare(
      `INSERT INTO ${name} (${columns.join(', ')}) VALUES (${columns.map((column) => `@${column}`).join(', ')})`,
    );
    for (const row of rows) insert.run(row);
  }
}

/** Tells whether an error is the disk's: full, broken or read-only. */
function isOfDisk(error: unknown): boolean {
  return error instanceof BetterSqlite3.SqliteError && /^SQLITE_(FULL|IOERR|READONLY|CANTOPEN)/.test(error.code);
}
