import BetterSqlite3 from 'better-sqlite3';
import { existsSync, statSync } from 'node:fs';
import type { Compilable } from 'kysely';
import type { Clock } from '../../shared/clock.js';
import { CodedError, SetupError, messageOf } from '../../shared/coded-error.js';
import { fileTroubleOf } from '../../shared/file-access.js';
import { randomIds, type Ids } from '../../shared/ids.js';
import type { MetricEvent } from '../domain/metric-event.js';
import type { WorkerName } from '../domain/worker-name.js';
import { Changes, type ChangeListener, type WatchedTable } from './changes.js';
import type { DiskRoom } from './disk-room.js';
import { GroupCommit, type Defer } from './group-commit.js';
import { migrations, type Migration } from './migrations/index.js';
import { BUSY_MS, SETTINGS, lockFile, migrate, openDatabase, shareAgain } from './open.js';
import { SqlRunner } from './sql.js';

/** One transaction: all statements of a use case, at one time. */
export interface Tx extends Pick<SqlRunner, 'all' | 'get' | 'run'> {
  /** Milliseconds since 1970 UTC, read once for the transaction. */
  readonly now: number;
  /** The API request that the transaction belongs to; null: none. */
  readonly requestId: string | null;
  /** The network address that the API request comes from; null: none, or it is unknown. */
  readonly address: string | null;
  /** Makes the UUID of a new row. */
  id(): string;
  /** Wakes a worker after the commit. */
  nudge(worker: WorkerName): void;
  /** Calls `run` after the commit, never after a rollback. */
  afterCommit(run: () => void): void;
  /** Counts a metric event after the commit. */
  count(counted: MetricEvent): void;
}

/** Pages of a backup copied at once: 4 MiB do not block requests for long. */
const PAGES_A_TURN = 1024;
/** A smaller log is not truncated. */
const IDLE_LOG_BYTES = 1024 * 1024;
/** SQLite's codes for a disk that is full, read-only or failing, and for a file that another process has locked. */
const UNAVAILABLE = /^SQLITE_(BUSY|CANTOPEN|FULL|IOERR|READONLY)/;

/** The database cannot be written now; reading it still works. */
export class StoreUnavailable extends CodedError<'STORE_UNAVAILABLE'> {
  constructor(cause: unknown) {
    super('STORE_UNAVAILABLE', `the database cannot be used: ${messageOf(cause)}`, { cause });
  }
}

/** The options of a store. Each default does nothing or is the production implementation. */
export interface StoreOptions {
  ids?: Ids;
  /** Called after a commit, once for each worker that the use case nudged. */
  onNudge?: (worker: WorkerName) => void;
  /** Called after a commit, for each event that the use case counted. */
  onCount?: (counted: MetricEvent) => void;
  /** Returns the id of the API request that is running now. */
  requestId?: () => string | null;
  /** Returns the network address from which the request comes that is running now. */
  address?: () => string | null;
  steps?: readonly Migration[];
  /**
   * Whether Litestream copies the database. It reads the log, so it alone moves the log into the database: what another process
   * moves before Litestream has read it is missing from the copy.
   */
  litestream?: boolean;
  /** What is done about a full disk: before the database is opened, and when SQLite has found it full. */
  room?: Pick<DiskRoom, 'makeRoom' | 'noteFull'>;
  /** Runs a function at the end of this turn of the event loop; without it, {@link Store.join} commits each use case alone. */
  deferCommit?: Defer;
}

/**
 * The only owner of the database file. All of it is synchronous: a use case is one call of {@link transact} without an `await`, so
 * use cases never interleave, deadlock or stop halfway.
 */
export class Store {
  /** Called before each transaction; the clock step detector sets it. */
  beforeEach: () => void = () => {};
  private readonly options: Required<Omit<StoreOptions, 'steps' | 'deferCommit'>>;
  private readonly connection: BetterSqlite3.Database;
  private readonly lock: BetterSqlite3.Database;
  private readonly runner: SqlRunner;
  private readonly changed: Changes;
  private readonly forgetters: (() => void)[] = [];
  private readonly group: GroupCommit;
  /** Why the present use case must not write; undefined: it may. */
  private unprepared: StoreUnavailable | undefined;
  /** Whether other processes can also use the database. */
  private isShared = true;
  /** The number of rows written until the last call of {@link truncateIdleLog}. */
  private changes = 0;

  /**
   * Opens, locks and migrates `file`; a migration copies it first. Throws SetupError when another control plane holds the file or it
   * cannot be used.
   */
  constructor(
    private readonly file: string,
    private readonly clock: Clock,
    { steps = migrations, ...options }: StoreOptions = {},
  ) {
    this.options = {
      ids: randomIds,
      onNudge: () => {},
      onCount: () => {},
      requestId: () => null,
      address: () => null,
      litestream: false,
      room: { makeRoom: () => {}, noteFull: () => {} },
      ...options,
    };
    // SQLite cannot even open a database on a full disk as it does otherwise.
    this.options.room.makeRoom();
    this.lock = lockFile(`${file}.lock`);
    let connection: BetterSqlite3.Database | undefined;
    try {
      if (!existsSync(file) && existsSync(incomingOf(file)))
        throw new Error('a restore was interrupted; run "gpurent-control-plane restore" again');
      ({ connection, isShared: this.isShared } = openDatabase(file, this.options.litestream));
      migrate(connection, file, steps);
    } catch (error) {
      connection?.close();
      this.lock.close();
      throw new SetupError(`the database ${file} cannot be used: ${fileTroubleOf(error)}`, { cause: error });
    }
    this.connection = connection;
    this.changed = new Changes(this.connection);
    this.runner = new SqlRunner(this.connection, () => this.beforeWrite());
    this.group = new GroupCommit(this.connection, options.deferCommit, (error) => {
      this.noteIfFull(error);
      this.noteUnknownChange();
    });
  }

  /**
   * Runs `work` in one durable transaction and rolls it back when `work` throws. Throws StoreUnavailable when the database cannot
   * be written; a use case that only reads then still works. The transaction begins with the first write: nothing else uses this
   * connection meanwhile, so what was read before has not changed. Within {@link join}, it is durable later.
   */
  transact<T>(work: (tx: Tx) => T): T {
    this.unprepared = this.prepare();
    this.group.prepare();
    const { address } = this.options;
    const nudged = new Set<WorkerName>();
    const committed: (() => void)[] = [];
    const tx: Tx = {
      now: this.clock.now(),
      requestId: this.options.requestId(),
      get address() {
        return address();
      },
      id: () => this.options.ids.uuid(),
      all: (statement) => this.runner.all(statement),
      get: (statement) => this.runner.get(statement),
      run: (statement: Compilable) => this.runner.run(statement),
      nudge: (worker) => nudged.add(worker),
      afterCommit: (run) => committed.push(run),
      count: (counted) => committed.push(() => this.options.onCount(counted)),
    };
    const result = this.unlessUnavailable(() => this.group.run(() => work(tx)));
    if (committed.length + nudged.size > 0) {
      this.group.whenDurable(() => {
        for (const run of committed) run();
        for (const worker of nudged) this.options.onNudge(worker);
      });
    }
    return result;
  }

  /**
   * Runs `work`, whose use cases become durable together with others of this turn of the event loop. Nobody outside may learn of them
   * before {@link whenDurable} says so, not even by a refusal.
   */
  join<T>(work: () => T): T {
    return this.group.join(work);
  }

  /** Runs `work`, whose use cases are durable when they end, although it may be called within {@link join}. */
  alone<T>(work: () => T): T {
    return this.group.alone(work);
  }

  /** Calls `run` once everything that was written up to now is durable, or `fail` with StoreUnavailable if it was lost. */
  whenDurable(run: () => void, fail?: (error: StoreUnavailable) => void): void {
    this.group.whenDurable(run, (error) => fail?.(new StoreUnavailable(error)));
  }

  /** Resolves once everything that was written up to now is durable; undefined: it is. Rejects with StoreUnavailable if it was lost. */
  durable(): Promise<void> | undefined {
    return this.group.durable()?.catch((error: unknown) => {
      throw new StoreUnavailable(error);
    });
  }

  /** The number of durable commits since the start. */
  get commits(): number {
    return this.group.commits;
  }

  /** Makes everything durable that was written up to now. */
  commit(): void {
    this.group.commit();
  }

  private beforeWrite(): void {
    if (this.unprepared) throw this.unprepared;
    this.group.beforeWrite();
  }

  /** Tells whether a use case is running that has written. */
  isWriting(): boolean {
    return this.group.isWriting;
  }

  /** Calls `listener` for each row of the table that changes, before the use case goes on. It must not use the store. */
  onChange(table: WatchedTable, listener: ChangeListener): void {
    this.changed.listen(table, listener);
  }

  /** Calls `listener` when rows have changed of which {@link onChange} has told nothing. */
  onUnknownChange(listener: () => void): void {
    this.forgetters.push(listener);
  }

  /** Must be called when rows have changed otherwise than by a statement on this connection. */
  noteUnknownChange(): void {
    for (const forget of this.forgetters) forget();
  }

  /** Calls {@link beforeEach}. If that cannot write, the transaction must not write either: returns the error for it to throw. */
  private prepare(): StoreUnavailable | undefined {
    try {
      // What it stores is durable at once: it remembers that it has.
      this.group.alone(this.beforeEach);
      return undefined;
    } catch (error) {
      if (error instanceof StoreUnavailable) return error;
      throw error;
    }
  }

  /**
   * Truncates the write-ahead log to free its disk space, if nothing was written since the last call. Does not wait: if another
   * process is reading the database, or Litestream copies it, the log stays. Returns whether the log was truncated.
   */
  truncateIdleLog(): boolean {
    this.commit();
    const { changes } = this.connection.prepare('SELECT total_changes() AS changes').get() as { changes: number };
    const isIdle = changes === this.changes;
    this.changes = changes;
    if (!isIdle || this.options.litestream || statSync(`${this.file}-wal`).size < IDLE_LOG_BYTES) return false;
    this.connection.pragma('busy_timeout = 0');
    try {
      const [answer] = this.connection.pragma('wal_checkpoint(TRUNCATE)') as { busy: number }[];
      return answer?.busy === 0;
    } finally {
      this.connection.pragma(`busy_timeout = ${BUSY_MS}`);
    }
  }

  /** Lets other processes use the database, after it was opened while there was no room for what they share. */
  share(): void {
    if (this.isShared) return;
    this.commit();
    shareAgain(this.connection);
    this.isShared = true;
  }

  /** Returns the present values of the durability pragmas. */
  settings(): Record<string, unknown> {
    return Object.fromEntries(
      Object.keys(SETTINGS).map((name) => [name, this.connection.pragma(name, { simple: true })]),
    );
  }

  /** Copies the database into a new file, some pages at a time between other work. Rejects once `isOver` returns true. */
  async backUp(to: string, isOver: () => boolean): Promise<void> {
    await this.connection.backup(to, {
      progress: () => {
        if (isOver()) throw new Error('the copy was aborted');
        // The copy has no uncommitted pages.
        this.commit();
        return PAGES_A_TURN;
      },
    });
  }

  private unlessUnavailable<T>(run: () => T): T {
    try {
      return run();
    } catch (error) {
      if (!(error instanceof BetterSqlite3.SqliteError && UNAVAILABLE.test(error.code))) throw error;
      this.noteIfFull(error);
      throw new StoreUnavailable(error);
    }
  }

  private noteIfFull(error: unknown): void {
    if (error instanceof BetterSqlite3.SqliteError && error.code === 'SQLITE_FULL') this.options.room.noteFull();
  }

  /** Closes the database. What is not durable yet is lost. */
  close(): void {
    this.connection.close();
    this.lock.close();
  }
}

/** Returns the file of a backup that is about to replace the database. */
export function incomingOf(file: string): string {
  return `${file}.restoring`;
}
