import type BetterSqlite3 from 'better-sqlite3';
import { callEach } from '../../shared/call-each.js';

/** Runs a function later in the same turn of the event loop, or in the next one. */
export type Defer = (run: () => void) => void;

interface Effect {
  run: () => void;
  fail: (error: unknown) => void;
}

/**
 * Commits the use cases of one turn of the event loop together, because a durable commit costs more than most use cases. Each has a
 * savepoint of its own, so that it is undone alone when it is refused. Only what is called within {@link join} takes part; everything
 * else begins after a commit and ends with one.
 */
export class GroupCommit {
  /** What waits for the commit of the open group; undefined: no group is open. */
  private effects: Effect[] | undefined;
  private isJoined = false;
  private hasWritten = false;
  /** Durable commits up to now. */
  commits = 0;
  private readonly statements: Record<
    'begin' | 'commit' | 'rollback' | 'save' | 'release' | 'undo',
    BetterSqlite3.Statement
  >;

  /** Without `defer`, every use case commits alone. `onLost` is called with the reason when what others could read was rolled back. */
  constructor(
    private readonly connection: BetterSqlite3.Database,
    private readonly defer: Defer | undefined,
    private readonly onLost: (error: unknown) => void,
  ) {
    this.statements = {
      begin: connection.prepare('BEGIN IMMEDIATE'),
      commit: connection.prepare('COMMIT'),
      rollback: connection.prepare('ROLLBACK'),
      save: connection.prepare('SAVEPOINT use_case'),
      release: connection.prepare('RELEASE use_case'),
      undo: connection.prepare('ROLLBACK TO use_case'),
    };
  }

  /** Tells whether a use case is running that has written. */
  get isWriting(): boolean {
    return this.hasWritten;
  }

  /** Runs `work`; its use cases are durable only once {@link whenDurable} says so. */
  join<T>(work: () => T): T {
    return this.withJoined(this.defer !== undefined, work);
  }

  /** Runs `work`; its use cases are durable when they end, although it may be called within {@link join}. */
  alone<T>(work: () => T): T {
    return this.withJoined(false, work);
  }

  /** Must be called before a use case, which sees nothing uncommitted unless it takes part in the group. */
  prepare(): void {
    if (this.hasWritten) throw new Error('a use case began within another');
    if (!this.isJoined) this.commit();
  }

  /** Must be called before each statement that writes. */
  beforeWrite(): void {
    if (this.hasWritten) return;
    if (!this.connection.inTransaction) {
      this.statements.begin.run();
      if (this.isJoined) this.open();
    }
    if (this.isJoined) this.statements.save.run();
    this.hasWritten = true;
  }

  /** Runs a use case: keeps what it has written, or undoes it if it throws. */
  run<T>(work: () => T): T {
    try {
      const result = work();
      if (this.hasWritten) this.finish();
      return result;
    } catch (error) {
      if (this.hasWritten) this.undo(error);
      throw error;
    } finally {
      this.hasWritten = false;
    }
  }

  /** Calls `run` once everything that was written up to now is durable, or `fail` if it was lost. */
  whenDurable(run: () => void, fail: (error: unknown) => void = () => {}): void {
    if (this.effects) this.effects.push({ run, fail });
    else run();
  }

  /** Resolves once everything that was written up to now is durable, and rejects if it was lost; undefined: it is durable. */
  durable(): Promise<void> | undefined {
    return this.effects && new Promise((resolve, reject) => this.whenDurable(resolve, reject));
  }

  /** Commits the open group, if there is one. */
  commit(): void {
    const { effects } = this;
    if (!effects) return;
    this.effects = undefined;
    try {
      this.statements.commit.run();
    } catch (error) {
      return this.lose(effects, error);
    }
    this.commits += 1;
    callEach(effects.map(({ run }) => run));
  }

  private finish(): void {
    if (this.isJoined) return void this.statements.release.run();
    this.statements.commit.run();
    this.commits += 1;
  }

  private withJoined<T>(isJoined: boolean, work: () => T): T {
    const before = this.isJoined;
    this.isJoined = isJoined;
    try {
      return work();
    } finally {
      this.isJoined = before;
    }
  }

  private open(): void {
    this.effects = [];
    this.defer?.(() => this.commit());
  }

  private undo(error: unknown): void {
    if (this.isJoined && this.connection.inTransaction) {
      this.statements.undo.run();
      this.statements.release.run();
      return;
    }
    // SQLite itself rolls back after some errors: with a use case of a group, the whole group is lost.
    const { effects } = this;
    this.effects = undefined;
    if (effects) this.lose(effects, error);
    else if (this.connection.inTransaction) this.statements.rollback.run();
  }

  private lose(effects: readonly Effect[], error: unknown): void {
    if (this.connection.inTransaction) this.statements.rollback.run();
    this.onLost(error);
    const failures = effects.map((effect) => () => effect.fail(error));
    callEach(failures);
  }
}
