import type { Clock, Timer } from '../../shared/clock.js';
import { messageOf } from '../../shared/coded-error.js';
import type { PacedLog } from '../../shared/paced-log.js';
import { troubleOf } from '../domain/failure.js';

const EVERY_MS = 30_000;

/** Runs the upkeep tasks every 30 seconds, and on request. A failed task is logged and tried again; it does not stop the others. */
export class Upkeep {
  private timer: Timer | undefined;
  private stopped = false;
  private last: Promise<void> = Promise.resolve();
  /** The run that has not begun yet. */
  private next: Promise<void> | undefined;

  constructor(
    private readonly tasks: Record<string, () => Promise<void>>,
    private readonly clock: Clock,
    private readonly paced: PacedLog,
  ) {}

  start(): void {
    if (this.stopped || Object.keys(this.tasks).length === 0) return;
    this.timer = this.clock.schedule(EVERY_MS, () => void this.runNow().finally(() => this.start()));
  }

  stop(): void {
    this.stopped = true;
    this.timer?.cancel();
  }

  /** Runs every task once, after a run that is under way. Calls that wait for it share the next run. Never rejects. */
  runNow(): Promise<void> {
    this.next ??= this.last = this.last.then(() => {
      this.next = undefined;
      return this.run();
    });
    return this.next;
  }

  private async run(): Promise<void> {
    for (const [name, work] of Object.entries(this.tasks)) {
      await work().catch((error: unknown) => {
        const message = `${name}: ${messageOf(error)}`;
        this.paced.write('error', message, {}, troubleOf(error, message));
      });
    }
  }
}
