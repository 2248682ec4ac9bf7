import BetterSqlite3 from 'better-sqlite3';
import { chmodSync, closeSync, existsSync, fsyncSync, openSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Compilable } from 'kysely';
import type { Clock } from '../../shared/clock.js';
import { CodedError, SetupError, messageOf } from '../../shared/coded-error.js';
import { randomIds, type Ids } from '../../shared/ids.js';
import type { MetricEvent } from '../domain/metric-event.js';
import type { WorkerName } from '../domain/worker-name.js';
import { migrations, type Migration } from './migrations/index.js';
import { SqlRunner } from './sql.js';

/** One transaction: every statement of a use case, and the one moment at which it happens. */
export interface Tx extends Pick<SqlRunner, 'all' | 'get' | 'run'> {
  /** Milliseconds since 1970 UTC, read once. */
  readonly now: number;
  /** The request of the API in which it happens; null: nobody asked. */
  readonly requestId: string | null;
  /** Makes the UUID of a new row. */
  id(): string;
  /** Wakes a worker, once the transaction is committed. */
  nudge(worker: WorkerName): void;
  /** Calls `run` once the transaction is committed, never when it is rolled back. */
  afterCommit(run: () => void): void;
  /** Counts something, once the transaction is committed. */
  count(counted: MetricEvent): void;
}

/** What every open asserts. */
const SETTINGS = { journal_mode: 'wal', synchronous: 2, foreign_keys: 1 };
/** A checkpoint is waited for: a larger one would hold up requests for longer than a settlement does. */
const CHECKPOINT_BYTES = 16 * 1024 * 1024;
const PAGE_BYTES = 4096;
/** Of a copy: 4 MiB hold nothing up for long. */
const PAGES_A_TURN = 1024;
/** A smaller log is left as it is. */
const IDLE_LOG_BYTES = 1024 * 1024;
const BUSY_MS = 5_000;
/** What SQLite says of a disk that is full, read-only or failing, and of a file that somebody else holds. */
const UNAVAILABLE = /^SQLITE_(BUSY|CANTOPEN|FULL|IOERR|READONLY)/;

/** The database cannot be written at this moment; what it holds can still be read. */
export class StoreUnavailable extends CodedError<'STORE_UNAVAILABLE'> {
  constructor(cause: unknown) {
    super('STORE_UNAVAILABLE', `the database cannot be used: ${messageOf(cause)}`, { cause });
  }
}

/** What a store needs beside its file and clock; each has a default that does nothing or is the real thing. */
export interface StoreOptions {
  ids?: Ids;
  /** Called after a commit, once for each worker that a use case wants to wake. */
  onNudge?: (worker: WorkerName) => void;
  /** Called after a commit, for each thing that was counted in it. */
  onCount?: (counted: MetricEvent) => void;
  /** Answers which request is being carried out at this moment. */
  requestId?: () => string | null;
  steps?: readonly Migration[];
}

/**
 * The one owner of the database file. Synchronous throughout: a use case is one call of {@link transact} without an
 * `await` in it, so nothing interleaves, dead-locks or half-happens.
 */
export class Store {
  /** Called before each transaction; the clock step detector sets it. */
  beforeEach: () => void = () => {};
  private readonly options: Required<Omit<StoreOptions, 'steps'>>;
  private readonly connection: BetterSqlite3.Database;
  private readonly lock: BetterSqlite3.Database;
  private readonly runner: SqlRunner;
  /** How many rows had been written when the log was last looked at. */
  private changes = 0;

  /** Opens, locks and migrates `file`, which is copied before it is changed. Throws SetupError when another control plane holds it or it cannot be used. */
  constructor(
    private readonly file: string,
    private readonly clock: Clock,
    { steps = migrations, ...options }: StoreOptions = {},
  ) {
    this.options = { ids: randomIds, onNudge: () => {}, onCount: () => {}, requestId: () => null, ...options };
    this.lock = lockFile(`${file}.lock`);
    try {
      if (!existsSync(file) && existsSync(incomingOf(file)))
        throw new Error('a restore was cut short; restore it again');
      this.connection = open(file);
      migrate(this.connection, file, steps);
    } catch (error) {
      this.lock.close();
      throw new SetupError(`the database ${file} cannot be used: ${messageOf(error)}`, { cause: error });
    }
    this.runner = new SqlRunner(this.connection);
  }

  /**
   * Runs `work` in one durable transaction. When it throws, nothing of it has happened. Throws StoreUnavailable when the database
   * cannot be written; a transaction that only reads needs no more than the file.
   */
  transact<T>(work: (tx: Tx) => T): T {
    const unprepared = this.prepare();
    const nudged = new Set<WorkerName>();
    const committed: (() => void)[] = [];
    const tx: Tx = {
      now: this.clock.now(),
      requestId: this.options.requestId(),
      id: () => this.options.ids.uuid(),
      all: (statement) => this.runner.all(statement),
      get: (statement) => this.runner.get(statement),
      run: (statement: Compilable) => {
        if (unprepared) throw unprepared;
        return this.runner.run(statement);
      },
      nudge: (worker) => nudged.add(worker),
      afterCommit: (run) => committed.push(run),
      count: (counted) => committed.push(() => this.options.onCount(counted)),
    };
    const result = unlessUnavailable(() => this.connection.transaction(() => work(tx)).deferred());
    for (const run of committed) run();
    for (const worker of nudged) this.options.onNudge(worker);
    return result;
  }

  /** Where what comes before a transaction cannot be written, nothing after it may be: the answer is why. */
  private prepare(): StoreUnavailable | undefined {
    try {
      this.beforeEach();
      return undefined;
    } catch (error) {
      if (error instanceof StoreUnavailable) return error;
      throw error;
    }
  }

  /**
   * Gives back the disk that the write-ahead log takes, when nothing was written since the last call. Waits for nobody: where
   * somebody reads the database, it is left as it is. Answers whether it was given back.
   */
  truncateIdleLog(): boolean {
    const { changes } = this.connection.prepare('SELECT total_changes() AS changes').get() as { changes: number };
    const isIdle = changes === this.changes;
    this.changes = changes;
    if (!isIdle || statSync(`${this.file}-wal`).size < IDLE_LOG_BYTES) return false;
    this.connection.pragma('busy_timeout = 0');
    try {
      const [answer] = this.connection.pragma('wal_checkpoint(TRUNCATE)') as { busy: number }[];
      return answer?.busy === 0;
    } finally {
      this.connection.pragma(`busy_timeout = ${BUSY_MS}`);
    }
  }

  /** The durability settings as they are now. */
  settings(): Record<string, unknown> {
    return Object.fromEntries(
      Object.keys(SETTINGS).map((name) => [name, this.connection.pragma(name, { simple: true })]),
    );
  }

  /** Copies the database as it is into a new file, some pages at a time between other work, until `isOver` says to give up. */
  async backUp(to: string, isOver: () => boolean): Promise<void> {
    await this.connection.backup(to, {
      progress: () => {
        if (isOver()) throw new Error('the copy was given up');
        return PAGES_A_TURN;
      },
    });
  }

  close(): void {
    this.connection.close();
    this.lock.close();
  }
}

/** Where a backup waits until it takes the place of the database. */
export function incomingOf(file: string): string {
  return `${file}.restoring`;
}

/** A lock that the kernel lets go when the process ends, however it ends. */
export function lockFile(file: string): BetterSqlite3.Database {
  try {
    const lock = new BetterSqlite3(file, { timeout: 0 });
    lock.exec('BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    if (!isBusy(error)) throw new SetupError(`cannot write ${file}: ${messageOf(error)}`, { cause: error });
    const running = `another control plane is running on this database (it holds ${file})`;
    throw new SetupError(`${running}: stop it first, an installed one by "systemctl stop gpurent-control-plane"`, {
      cause: error,
    });
  }
}

function unlessUnavailable<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (error instanceof BetterSqlite3.SqliteError && UNAVAILABLE.test(error.code)) throw new StoreUnavailable(error);
    throw error;
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof BetterSqlite3.SqliteError && error.code === 'SQLITE_BUSY';
}

function open(file: string): BetterSqlite3.Database {
  const connection = new BetterSqlite3(file, { timeout: BUSY_MS });
  // Whatever the umask: what SQLite keeps beside it is given the same mode.
  chmodSync(file, 0o600);
  connection.pragma('journal_mode = WAL');
  connection.pragma('synchronous = FULL');
  connection.pragma('foreign_keys = ON');
  connection.pragma(`wal_autocheckpoint = ${CHECKPOINT_BYTES / PAGE_BYTES}`);
  // What has grown behind a slow reader is given back once that has ended.
  connection.pragma(`journal_size_limit = ${CHECKPOINT_BYTES}`);
  // A re-opened WAL file can come back with a weaker setting than was asked for.
  for (const [name, expected] of Object.entries(SETTINGS)) {
    const actual = connection.pragma(name, { simple: true });
    if (actual !== expected) throw new Error(`${name} is ${String(actual)}, not ${expected}`);
  }
  return connection;
}

function migrate(connection: BetterSqlite3.Database, file: string, steps: readonly Migration[]): void {
  const version = connection.pragma('user_version', { simple: true }) as number;
  if (version > steps.length) {
    throw new Error(`it was written by a newer release (schema ${version}, this one knows ${steps.length})`);
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

/** What goes back to the release before: its `restore` takes it. One that an earlier attempt has left is older, and replaced. */
function copyBefore(connection: BetterSqlite3.Database, copy: string): void {
  rmSync(copy, { force: true });
  writeCopy(connection, copy);
}

/** Copies a database into a new file, for its owner alone; it is on the disk when this returns. */
export function writeCopy(connection: BetterSqlite3.Database, copy: string): void {
  connection.prepare('VACUUM INTO ?').run(copy);
  chmodSync(copy, 0o600);
  for (const path of [copy, dirname(copy)]) {
    const file = openSync(path, 'r');
    fsyncSync(file);
    closeSync(file);
  }
}
