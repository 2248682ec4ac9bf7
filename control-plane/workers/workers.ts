import cron, { type ScheduledTask } from 'node-cron';
import { messageOf } from '../../shared/coded-error.js';
import type { Logger } from '../../shared/logger.js';
import type { WorkerRuns } from '../services/system/worker-runs.js';

/**
 * Does a bounded piece of work in the database and returns counts of it. After a crash at any point, its next run completes the
 * work.
 */
export type Worker = () => Record<string, number>;

/** Runs each worker every second, and at once when nudged. A failure is logged and recorded, and the worker runs again. */
export class Workers<Name extends string> {
  private readonly pending = new Set<Name>();
  private heartbeat: ScheduledTask | undefined;
  private stopped = false;

  constructor(
    private readonly workers: Readonly<Record<Name, Worker>>,
    private readonly runs: WorkerRuns,
    private readonly logger: Logger,
    private readonly defer: (run: () => void) => void,
  ) {
    for (const name of Object.keys(workers)) runs.declare(name);
  }

  /** Runs all workers every second: node-cron is only the tick, and no job goes by its wall clock. Tests call {@link runAll} instead. */
  start(): void {
    this.heartbeat = cron.schedule('* * * * * *', () => this.runAll(), { noOverlap: true });
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.heartbeat?.destroy();
  }

  /** Schedules one run of the worker; further nudges before that run change nothing. */
  nudge(name: Name): void {
    if (this.pending.has(name)) return;
    this.pending.add(name);
    this.defer(() => {
      this.pending.delete(name);
      this.run(name);
    });
  }

  runAll(): void {
    for (const name of Object.keys(this.workers) as Name[]) this.run(name);
  }

  private run(name: Name): void {
    if (this.stopped) return;
    try {
      const report = this.runs.record(name, this.workers[name]);
      if (Object.values(report).some((count) => count > 0))
        this.logger.debug({ worker: name, ...report }, 'worker ran');
    } catch (error) {
      this.logger.error({ worker: name, err: error }, `worker failed: ${messageOf(error)}`);
    }
  }
}
