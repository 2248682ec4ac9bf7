import { CommandResult, WorkloadReport, type EndedRun } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { nameOfReport, type EndedRunEntry } from '../domain/ended-run.js';
import { JournalStorage } from './journal-storage.js';

/**
 * What an instance is meant to be on this host. `ended`: its workload ended by itself, nothing is to be brought back. `unsure`:
 * it is down, and the journal that knew why is lost; the control plane will tell.
 */
export type Desired = 'running' | 'stopped' | 'absent' | 'ended' | 'unsure';

export interface InstanceEntry {
  instanceId: string;
  /** The highest command sequence accepted. */
  sequence: number;
  desired: Desired;
}

export type MetaKey = 'boot_id' | 'docker_run' | 'interrupted' | 'epoch' | 'paid_times' | 'takes_unseen';

export type CommandEntry =
  | {
      state: 'begun';
      /** When the run that the workload had before this command started it was started itself; null: not started yet. */
      runBefore: number | null;
      /** How often the agent's process has ended in the middle of it. */
      crashes: number;
    }
  | { state: 'finished'; result: CommandResult };

const SCHEMA = `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE instances (
  instance_id TEXT PRIMARY KEY,
  sequence INTEGER NOT NULL,
  desired TEXT NOT NULL,
  report_number INTEGER NOT NULL DEFAULT 0,
  -- The newest report, until it is acknowledged.
  report BLOB
) STRICT, WITHOUT ROWID;
CREATE TABLE commands (
  command_id TEXT PRIMARY KEY,
  instance_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  desired TEXT NOT NULL,
  -- Null from before the first side effect until after the last.
  result BLOB,
  acknowledged INTEGER NOT NULL DEFAULT 0,
  -- The run that a start came after, once it is about to start another.
  run_before INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX commands_by_instance ON commands (instance_id);
`;
/** Each is applied once, in its order; what has been released never changes. */
const MIGRATIONS = [
  SCHEMA,
  `
ALTER TABLE commands ADD COLUMN under_way INTEGER NOT NULL DEFAULT 0;
-- How often the agent's process has ended in the middle of it.
ALTER TABLE commands ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;
`,
  `
-- Runs that have ended, until the control plane has acknowledged a message that tells of them.
CREATE TABLE runs (
  instance_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  ran_ms INTEGER NOT NULL,
  -- Milliseconds since 1970 by this host's clock.
  ended_at INTEGER NOT NULL,
  -- The last message that told of it: a command's id, or an instance's and a report's number.
  told_by TEXT,
  PRIMARY KEY (instance_id, run_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_by_message ON runs (told_by) WHERE told_by IS NOT NULL;
`,
];
/** Of one instance; the oldest give way. */
const MAX_RUNS = 16;

/**
 * What this host has been told and has done. Written before the first side effect of a command and after its last, durably,
 * so that no crash repeats one or forgets one. Holds no environment and no secret: those come with each command.
 */
export class Journal {
  private readonly storage: JournalStorage;

  constructor(file: string) {
    this.storage = new JournalStorage(file, MIGRATIONS);
  }

  private get db() {
    return this.storage.db;
  }

  /** Why nothing that is written now would outlive this process, and what to do; empty: all of it would. */
  get obstacle(): string {
    return this.storage.obstacle;
  }

  /** Writes what the disk has not taken so far. Throws while it does not take it. */
  restore(): void {
    this.storage.restore();
  }

  meta(key: MetaKey): string | undefined {
    return this.db.prepare<[string], { value: string }>('SELECT value FROM meta WHERE key = ?').get(key)?.value;
  }

  setMeta(key: MetaKey, value: string): void {
    this.storage.write(() =>
      this.db
        .prepare('INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value')
        .run(key, value),
    );
  }

  instances(): InstanceEntry[] {
    return this.db
      .prepare<[], InstanceEntry>(
        'SELECT instance_id AS instanceId, sequence, desired FROM instances ORDER BY instance_id',
      )
      .all();
  }

  instance(instanceId: string): InstanceEntry | undefined {
    return this.db
      .prepare<[string], InstanceEntry>(
        'SELECT instance_id AS instanceId, sequence, desired FROM instances WHERE instance_id = ?',
      )
      .get(instanceId);
  }

  command(commandId: string): CommandEntry | undefined {
    const row = this.db
      .prepare<[string], { result: Buffer | null; run_before: number | null; crashes: number }>(
        'SELECT result, run_before, crashes FROM commands WHERE command_id = ?',
      )
      .get(commandId);
    if (!row) return undefined;
    return row.result
      ? { state: 'finished', result: CommandResult.decode(row.result) }
      : { state: 'begun', runBefore: row.run_before, crashes: row.crashes };
  }

  /** Right before a start: a crash after it must not make the command start a second run. */
  noteRun(commandId: string, runBefore: number): void {
    this.storage.write(() =>
      this.db.prepare('UPDATE commands SET run_before = ? WHERE command_id = ?').run(runBefore, commandId),
    );
  }

  /** Whether a command of the instance was begun and cut short: it is sent again, or a newer one comes. */
  isUnfinished(instanceId: string): boolean {
    const begun = this.db.prepare('SELECT 1 FROM commands WHERE instance_id = ? AND result IS NULL LIMIT 1');
    return begun.get(instanceId) !== undefined;
  }

  /** Whether a stop of the instance was begun by an agent before this one: its signal may be out. */
  isStopCutShort(instanceId: string): boolean {
    const begun = this.db.prepare(
      "SELECT 1 FROM commands WHERE instance_id = ? AND result IS NULL AND desired = 'stopped' LIMIT 1",
    );
    return begun.get(instanceId) !== undefined;
  }

  /** Before the first side effect: the command, its sequence, and what it wants. */
  begin(command: { commandId: string; instanceId: string; sequence: number }, desired: Desired): void {
    this.storage.write(() => {
      this.remember({ instanceId: command.instanceId, sequence: command.sequence, desired });
      this.db
        .prepare(
          'INSERT INTO commands (command_id, instance_id, sequence, desired) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
        )
        .run(command.commandId, command.instanceId, command.sequence, desired);
    });
  }

  /**
   * Counts a crash for each command that was under way when the process before this one ended without a word; for none where
   * the host itself went down.
   */
  countCrashes(isNewBoot: boolean): void {
    this.storage.write(() => {
      const crashes = isNewBoot ? 0 : 1;
      this.db.prepare('UPDATE commands SET crashes = crashes + ?, under_way = 0 WHERE under_way = 1').run(crashes);
    });
  }

  /** Notes that a command is worked on: should the process end now, it may be the cause. */
  beginAttempt(commandId: string): void {
    this.storage.write(() => this.db.prepare('UPDATE commands SET under_way = 1 WHERE command_id = ?').run(commandId));
  }

  isUnderWay(commandId: string): boolean {
    const found = this.db.prepare('SELECT 1 FROM commands WHERE command_id = ? AND under_way = 1');
    return found.get(commandId) !== undefined;
  }

  /** Notes that a command is worked on no longer, whatever has come of it; without one, none is. */
  endAttempt(commandId?: string): void {
    this.storage.write(() =>
      this.db
        .prepare('UPDATE commands SET under_way = 0 WHERE command_id = coalesce(?, command_id)')
        .run(commandId ?? null),
    );
  }

  /** After the last side effect. `desired` where the outcome changes it. Older answers of the instance are forgotten. */
  finish(result: CommandResult, desired?: Desired): void {
    this.storage.write(() => {
      this.db
        .prepare('UPDATE commands SET result = ?, acknowledged = 0 WHERE command_id = ?')
        .run(CommandResult.encode(result).finish(), result.commandId);
      this.db
        .prepare('DELETE FROM commands WHERE instance_id = ? AND sequence < ? AND (acknowledged = 1 OR result IS NULL)')
        .run(result.instanceId, result.sequence);
      if (!desired) return;
      this.setDesired(result.instanceId, desired);
      // What was reported before is overtaken by this answer.
      this.db.prepare('UPDATE instances SET report = NULL WHERE instance_id = ?').run(result.instanceId);
    });
  }

  acknowledge(commandId: string): void {
    this.storage.write(() => {
      this.db.prepare('UPDATE commands SET acknowledged = 1 WHERE command_id = ?').run(commandId);
      this.forgetRuns(commandId);
    });
  }

  /** Notes a run that is about to be ended, or has ended; what is noted of the same run later is more exact. */
  noteEndedRun({ instanceId, runId, ranMs, endedAt }: EndedRunEntry): void {
    this.storage.write(() => {
      this.db
        .prepare(
          `INSERT INTO runs (instance_id, run_id, ran_ms, ended_at) VALUES (?, ?, ?, ?)
             ON CONFLICT (instance_id, run_id)
             DO UPDATE SET ran_ms = excluded.ran_ms, ended_at = excluded.ended_at, told_by = NULL`,
        )
        .run(instanceId, runId, ranMs, endedAt);
      this.db
        .prepare(
          `DELETE FROM runs WHERE instance_id = @instanceId AND run_id NOT IN
             (SELECT run_id FROM runs WHERE instance_id = @instanceId ORDER BY ended_at DESC LIMIT ${MAX_RUNS})`,
        )
        .run({ instanceId });
    });
  }

  /** The ended runs of an instance for a message that is about to be sent at `now`; its acknowledgement is theirs, too. */
  runsFor(instanceId: string, message: string, now: number): EndedRun[] {
    return this.storage
      .write(() =>
        this.db
          .prepare<[string, string], { run_id: string; ran_ms: number; ended_at: number }>(
            'UPDATE runs SET told_by = ? WHERE instance_id = ? RETURNING run_id, ran_ms, ended_at',
          )
          .all(message, instanceId),
      )
      .map(({ run_id, ran_ms, ended_at }) => ({
        runId: run_id,
        ranMs: ran_ms,
        endedMsAgo: Math.max(now - ended_at, 0),
      }));
  }

  private forgetRuns(message: string): void {
    this.storage.write(() => this.db.prepare('DELETE FROM runs WHERE told_by = ?').run(message));
  }

  unacknowledgedResults(): CommandResult[] {
    return this.db
      .prepare<[], { result: Buffer }>(
        'SELECT result FROM commands WHERE result IS NOT NULL AND acknowledged = 0 ORDER BY sequence',
      )
      .all()
      .map(({ result }) => CommandResult.decode(result));
  }

  /** An instance that Docker's labels tell of; a sequence only rises. */
  remember(entry: InstanceEntry): void {
    this.storage.write(() =>
      this.db
        .prepare(
          `INSERT INTO instances (instance_id, sequence, desired) VALUES (@instanceId, @sequence, @desired)
         ON CONFLICT (instance_id) DO UPDATE SET sequence = max(sequence, excluded.sequence), desired = excluded.desired`,
        )
        .run(entry),
    );
  }

  /**
   * The control plane has given and heard higher numbers than a lost journal remembers: what is still to be reported is numbered
   * anew above them.
   */
  raise(instanceId: string, sequence: number, reportNumber: number): void {
    this.storage.write(() => {
      const row = this.db
        .prepare<[string], { report_number: number; report: Buffer | null }>(
          'SELECT report_number, report FROM instances WHERE instance_id = ?',
        )
        .get(instanceId);
      if (!row) return;
      const behind = row.report !== null && row.report_number <= reportNumber;
      const number = Math.max(row.report_number, behind ? reportNumber + 1 : reportNumber);
      const report = row.report && WorkloadReport.encode({ ...WorkloadReport.decode(row.report), number }).finish();
      this.db
        .prepare(
          'UPDATE instances SET sequence = max(sequence, ?), report_number = ?, report = ? WHERE instance_id = ?',
        )
        .run(sequence, number, report, instanceId);
    });
  }

  setDesired(instanceId: string, desired: Desired): void {
    this.storage.write(() =>
      this.db.prepare('UPDATE instances SET desired = ? WHERE instance_id = ?').run(desired, instanceId),
    );
  }

  /**
   * Numbers and keeps a report; it replaces the instance's older one. Numbers begin at `now` (milliseconds since 1970), so that
   * they rise also over the loss of a journal.
   */
  report(report: Omit<WorkloadReport, 'number' | 'sequence' | 'runs'>, now: number, desired?: Desired): WorkloadReport {
    return this.storage.write(() => {
      if (desired) this.setDesired(report.instanceId, desired);
      const row = this.db
        .prepare<[number, string], { number: number; sequence: number }>(
          'UPDATE instances SET report_number = max(report_number + 1, ?) WHERE instance_id = ? RETURNING report_number AS number, sequence',
        )
        .get(now, report.instanceId);
      if (!row) throw new Error(`instance ${report.instanceId} is not in the journal`);
      const numbered: WorkloadReport = { ...report, ...row, runs: [] };
      this.db
        .prepare('UPDATE instances SET report = ? WHERE instance_id = ?')
        .run(WorkloadReport.encode(numbered).finish(), report.instanceId);
      return numbered;
    });
  }

  acknowledgeReport(instanceId: string, number: number): void {
    this.storage.write(() => {
      this.db
        .prepare('UPDATE instances SET report = NULL WHERE instance_id = ? AND report_number = ?')
        .run(instanceId, number);
      this.forgetRuns(nameOfReport({ instanceId, number }));
    });
  }

  /** Whether the newest report of the instance is still to be acknowledged. */
  hasReport(instanceId: string): boolean {
    const kept = this.db.prepare('SELECT 1 FROM instances WHERE instance_id = ? AND report IS NOT NULL');
    return kept.get(instanceId) !== undefined;
  }

  /** No control plane wants any more what was cut short: the instance is to be as it says. */
  abandon(instanceId: string, desired: Desired): void {
    this.storage.write(() => {
      this.db.prepare('DELETE FROM commands WHERE instance_id = ? AND result IS NULL').run(instanceId);
      this.setDesired(instanceId, desired);
    });
  }

  unacknowledgedReports(): WorkloadReport[] {
    return this.db
      .prepare<[], { report: Buffer }>('SELECT report FROM instances WHERE report IS NOT NULL')
      .all()
      .map(({ report }) => WorkloadReport.decode(report));
  }

  close(): void {
    this.storage.close();
  }
}
