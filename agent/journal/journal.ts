import { CommandResult, WorkloadReport, type EndedRun } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { Clock } from '../../shared/clock.js';
import { nameOfReport, type EndedRunEntry, type RunStart } from '../domain/ended-run.js';
import { JournalStorage } from './journal-storage.js';

/**
 * The desired state of an instance on this host. `ended`: its workload ended by itself and must not be started again. `unsure`: the
 * workload is down, and the journal that recorded why is lost; the control plane decides.
 */
export type Desired = 'running' | 'stopped' | 'absent' | 'ended' | 'unsure';

export interface InstanceEntry {
  instanceId: string;
  /** The highest command sequence accepted. */
  sequence: number;
  desired: Desired;
}

export type MetaKey =
  | 'boot_id'
  | 'docker_run'
  | 'interrupted'
  | 'epoch'
  | 'paid_times'
  | 'takes_unseen'
  | 'gpu_verdict';

export type CommandEntry =
  | {
      state: 'begun';
      /** When the previous run of the workload started, in ms since 1970; null: this command has not started the workload yet. */
      runBefore: number | null;
      /** How often the agent's process has ended during this command. */
      crashes: number;
    }
  | { state: 'finished'; result: CommandResult };

interface RunRow {
  run_id: string;
  ran_ms: number;
  ended_at: number;
  boot_id: string | null;
  ended_ms: number | null;
}

interface StartRow {
  started_at: number | null;
  began_ms: number | null;
  wall_offset_ms: number | null;
  starting_ms: number | null;
}

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
/** Each is applied once, in order. A released migration never changes, not even its comments. */
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
  `
-- When it ended by the monotonic clock of the boot; null: it began before that boot.
ALTER TABLE runs ADD COLUMN boot_id TEXT;
ALTER TABLE runs ADD COLUMN ended_ms INTEGER;
-- The newest run of each workload, by the clocks of the boot: no wall clock that is set changes how long it has lasted.
CREATE TABLE run_starts (
  instance_id TEXT PRIMARY KEY,
  boot_id TEXT NOT NULL,
  -- Docker's time of its start; null: none was seen yet.
  started_at INTEGER,
  began_ms INTEGER,
  wall_offset_ms INTEGER,
  -- When the agent was about to start a run that it has not seen yet.
  starting_ms INTEGER
) STRICT, WITHOUT ROWID;
`,
];
/** The limit of ended runs of one instance; the oldest are deleted. */
const MAX_RUNS = 16;

/**
 * The commands that this host has received, their results and the runs of workloads. The agent writes it durably before the first side
 * effect of a command and after the last, so that a crash neither repeats nor loses one. It contains no environment and no secret:
 * those come with each command.
 */
export class Journal {
  private readonly storage: JournalStorage;

  constructor(file: string) {
    this.storage = new JournalStorage(file, MIGRATIONS);
  }

  private get db() {
    return this.storage.db;
  }

  /** Why writes are only in memory, and what to do about it; empty: all data is on the disk. */
  get obstacle(): string {
    return this.storage.obstacle;
  }

  /** Writes to the disk what is only in memory. Throws while the disk refuses it. */
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

  /** Records the previous run right before a start, so that a crash after it does not make the command start a second run. */
  noteRun(commandId: string, runBefore: number): void {
    this.storage.write(() =>
      this.db.prepare('UPDATE commands SET run_before = ? WHERE command_id = ?').run(runBefore, commandId),
    );
  }

  /** Tells whether a command of the instance was begun and has no result: the control plane sends it again, or sends a newer one. */
  isUnfinished(instanceId: string): boolean {
    const begun = this.db.prepare('SELECT 1 FROM commands WHERE instance_id = ? AND result IS NULL LIMIT 1');
    return begun.get(instanceId) !== undefined;
  }

  /** Tells whether a stop of the instance was begun and has no result: the workload can already have its signal. */
  isStopCutShort(instanceId: string): boolean {
    const begun = this.db.prepare(
      "SELECT 1 FROM commands WHERE instance_id = ? AND result IS NULL AND desired = 'stopped' LIMIT 1",
    );
    return begun.get(instanceId) !== undefined;
  }

  /** Records a command, its sequence and its desired state, before its first side effect. */
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
   * Counts a crash for each command that was under way when the previous process of the agent ended unexpectedly. Counts none after
   * a reboot, because then the host itself went down.
   */
  countCrashes(isNewBoot: boolean): void {
    this.storage.write(() => {
      const crashes = isNewBoot ? 0 : 1;
      this.db.prepare('UPDATE commands SET crashes = crashes + ?, under_way = 0 WHERE under_way = 1').run(crashes);
    });
  }

  /** Marks a command as under way: if the process ends now, the command can be the cause. */
  beginAttempt(commandId: string): void {
    this.storage.write(() => this.db.prepare('UPDATE commands SET under_way = 1 WHERE command_id = ?').run(commandId));
  }

  isUnderWay(commandId: string): boolean {
    const found = this.db.prepare('SELECT 1 FROM commands WHERE command_id = ? AND under_way = 1');
    return found.get(commandId) !== undefined;
  }

  /** Marks a command as no longer under way, whatever its outcome; without `commandId`, all commands. */
  endAttempt(commandId?: string): void {
    this.storage.write(() =>
      this.db
        .prepare('UPDATE commands SET under_way = 0 WHERE command_id = coalesce(?, command_id)')
        .run(commandId ?? null),
    );
  }

  /**
   * Records the result of a command, after its last side effect, and the new desired state if the outcome changes it. Deletes acknowledged
   * and unfinished older commands of the instance.
   */
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
      // The result is newer than the report.
      this.db.prepare('UPDATE instances SET report = NULL WHERE instance_id = ?').run(result.instanceId);
    });
  }

  acknowledge(commandId: string): void {
    this.storage.write(() => {
      this.db.prepare('UPDATE commands SET acknowledged = 1 WHERE command_id = ?').run(commandId);
      this.forgetRuns(commandId);
    });
  }

  /** Records a run that is about to end, or has ended. A later record of the same run replaces it, because it is more exact. */
  noteEndedRun({ instanceId, runId, ranMs, endedAt, endedMs }: EndedRunEntry): void {
    this.storage.write(() => {
      this.db
        .prepare(
          `INSERT INTO runs (instance_id, run_id, ran_ms, ended_at, boot_id, ended_ms) VALUES (?, ?, ?, ?, ?, ?)
             ON CONFLICT (instance_id, run_id)
             DO UPDATE SET ran_ms = excluded.ran_ms, ended_at = excluded.ended_at, boot_id = excluded.boot_id,
               ended_ms = excluded.ended_ms, told_by = NULL`,
        )
        .run(instanceId, runId, ranMs, endedAt, this.bootId, endedMs === undefined ? null : Math.floor(endedMs));
      this.db
        .prepare(
          `DELETE FROM runs WHERE instance_id = @instanceId AND run_id NOT IN
             (SELECT run_id FROM runs WHERE instance_id = @instanceId ORDER BY ended_at DESC LIMIT ${MAX_RUNS})`,
        )
        .run({ instanceId });
    });
  }

  /** Returns the ended runs of an instance for a message sent now. The acknowledgement of that message also acknowledges them. */
  runsFor(instanceId: string, message: string, clock: Pick<Clock, 'now' | 'monotonic'>): EndedRun[] {
    return this.storage
      .write(() =>
        this.db
          .prepare<[string, string], RunRow>(
            'UPDATE runs SET told_by = ? WHERE instance_id = ? RETURNING run_id, ran_ms, ended_at, boot_id, ended_ms',
          )
          .all(message, instanceId),
      )
      .map((run) => ({ runId: run.run_id, ranMs: run.ran_ms, endedMsAgo: this.endedAgo(run, clock) }));
  }

  /** Returns how long ago a run ended, in milliseconds: by the monotonic clock if it was in this boot. */
  private endedAgo({ boot_id, ended_ms, ended_at }: RunRow, clock: Pick<Clock, 'now' | 'monotonic'>): number {
    const ago =
      ended_ms !== null && boot_id === this.bootId ? clock.monotonic() - ended_ms : Math.max(clock.now() - ended_at, 0);
    return Math.max(Math.floor(ago), 0);
  }

  private get bootId(): string {
    return this.meta('boot_id') ?? '';
  }

  /** Returns when the newest run of a workload began; undefined: not in this boot, as far as the agent has seen. */
  runStart(instanceId: string): RunStart | undefined {
    const { started_at, began_ms, wall_offset_ms } = this.startRow(instanceId) ?? {};
    if (started_at == null || began_ms == null || wall_offset_ms == null) return undefined;
    return { startedAt: started_at, beganAt: began_ms, wallOffset: wall_offset_ms };
  }

  /** Returns when the agent was about to start a run that it has not seen yet, in monotonic milliseconds. */
  startingSince(instanceId: string): number | undefined {
    return this.startRow(instanceId)?.starting_ms ?? undefined;
  }

  private startRow(instanceId: string): StartRow | undefined {
    const own = this.db.prepare<[string, string], StartRow>(
      'SELECT started_at, began_ms, wall_offset_ms, starting_ms FROM run_starts WHERE instance_id = ? AND boot_id = ?',
    );
    return own.get(instanceId, this.bootId);
  }

  /** Records when a run began, in place of the run before. */
  noteRunStart(instanceId: string, { startedAt, beganAt, wallOffset }: RunStart): void {
    this.storage.write(() =>
      this.db
        .prepare('INSERT OR REPLACE INTO run_starts VALUES (?, ?, ?, ?, ?, NULL)')
        .run(instanceId, this.bootId, startedAt, beganAt, wallOffset),
    );
  }

  /** Records, right before a start, that the next new run began no earlier than `at`, in monotonic milliseconds. */
  noteStarting(instanceId: string, at: number): void {
    this.storage.write(() => {
      this.db.prepare('DELETE FROM run_starts WHERE instance_id = ? AND boot_id <> ?').run(instanceId, this.bootId);
      this.db
        .prepare(
          `INSERT INTO run_starts (instance_id, boot_id, starting_ms) VALUES (?, ?, ?)
             ON CONFLICT (instance_id) DO UPDATE SET starting_ms = coalesce(starting_ms, excluded.starting_ms)`,
        )
        .run(instanceId, this.bootId, at);
    });
  }

  /** Forgets the runs of a workload that is gone. */
  forgetRunStart(instanceId: string): void {
    this.storage.write(() => this.db.prepare('DELETE FROM run_starts WHERE instance_id = ?').run(instanceId));
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

  /** Records an instance and its desired state. Its sequence never falls. */
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
   * Raises the sequence and report number of an instance to those of the control plane, which are higher if a journal was lost.
   * Gives a pending report a new number above them.
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
   * Numbers and stores a report; it replaces the older report of the instance. Numbers are at least `now` (ms since 1970), so that
   * they rise even if a journal is lost. Throws if the instance is not in the journal.
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

  /** Tells whether a report of the instance is not yet acknowledged. */
  hasReport(instanceId: string): boolean {
    const kept = this.db.prepare('SELECT 1 FROM instances WHERE instance_id = ? AND report IS NOT NULL');
    return kept.get(instanceId) !== undefined;
  }

  /** Deletes unfinished commands of an instance, which the control plane no longer wants, and sets its desired state. */
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
