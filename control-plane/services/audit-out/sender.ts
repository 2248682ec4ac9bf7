import { messageOf } from '../../../shared/coded-error.js';
import type { Logger } from '../../../shared/logger.js';
import type { AuditOutputName, PlacedLine } from '../../domain/audit-line.js';
import { pauseMs } from '../../domain/webhook.js';
import type { Core } from '../system/platform.js';
import { beginCursors, deleteDelivered, moveCursors, nextLines } from './cursors.js';
import { NotTaken, type AuditOutput } from './outputs.js';
import { LINES_A_RUN } from './sources.js';

/** How an output has done since its last success. In memory: after a restart it is tried at once. */
interface Trouble {
  failures: number;
  /** When it is tried again, in milliseconds of the monotonic clock. */
  at: number;
}

/**
 * Delivers audit lines to each output that is on, at least once, and those of one source in their order: one batch at a time. The cursor
 * moves after a batch was taken, so a crash in between repeats the batch, and an output that takes nothing delays its lines and loses none.
 */
export class AuditSender {
  private readonly flights = new Map<AuditOutputName, Promise<void>>();
  private readonly troubles = new Map<AuditOutputName, Trouble>();
  private readonly stopping = new AbortController();
  private hasBegun: boolean;

  constructor(
    private readonly core: Pick<Core, 'store' | 'clock'>,
    private readonly outputs: readonly AuditOutput[],
    private readonly logger: Logger,
  ) {
    // Without outputs there is something to do only after a start: see `forgetOff`.
    this.hasBegun = outputs.length === 0;
  }

  /** Lets the next runs forget the outputs that an earlier start had and this one has not. */
  forgetOff(): void {
    this.hasBegun = false;
  }

  /** Begins the next batch of each output that is ready for one. */
  run(): { begun: number } {
    if (this.stopping.signal.aborted) return { begun: 0 };
    this.begin();
    const ready = this.outputs.filter(({ name }) => this.isReady(name));
    return { begun: ready.filter((output) => this.beginBatch(output)).length };
  }

  /** Breaks off what is under way, whose lines are sent again after the next start. */
  async stop(): Promise<void> {
    this.stopping.abort(new Stopped());
    await Promise.all(this.flights.values());
  }

  /** At the first run, and while acts are queued for outputs that are off now: they are deleted a part at a time. */
  private begin(): void {
    if (this.hasBegun) return;
    const names = this.outputs.map(({ name }) => name);
    this.hasBegun = this.core.store.transact((tx) => {
      beginCursors(tx, names);
      return !deleteDelivered(tx);
    });
  }

  private isReady(name: AuditOutputName): boolean {
    const { at = 0 } = this.troubles.get(name) ?? {};
    return !this.flights.has(name) && this.core.clock.monotonic() >= at;
  }

  private beginBatch(output: AuditOutput): boolean {
    const { store } = this.core;
    // Only what is durable leaves: after a crash, another act could get the same number.
    const lines = store.alone(() => store.transact((tx) => nextLines(tx, output.name)));
    if (lines.length === 0) return false;
    this.flights.set(output.name, this.deliver(output, lines));
    return true;
  }

  private async deliver(output: AuditOutput, lines: readonly PlacedLine[]): Promise<void> {
    const { name } = output;
    try {
      await output.send(
        lines.map(({ text }) => text),
        this.stopping.signal,
      );
      this.flights.delete(name);
      this.core.store.transact((tx) => {
        moveCursors(tx, name, lines);
        if (lines.length === LINES_A_RUN) tx.nudge('audit-out');
      });
      this.noteSuccess(name);
    } catch (error) {
      this.flights.delete(name);
      if (!(error instanceof Stopped)) this.noteFailure(name, error);
    }
  }

  private noteSuccess(output: AuditOutputName): void {
    if (this.troubles.delete(output)) this.logger.info({ output }, 'audit lines are delivered again');
  }

  private noteFailure(output: AuditOutputName, error: unknown): void {
    const failures = (this.troubles.get(output)?.failures ?? 0) + 1;
    const waitMs = pauseMs(failures, error instanceof NotTaken ? error.askedMs : 0);
    this.troubles.set(output, { failures, at: this.core.clock.monotonic() + waitMs });
    const about = {
      output,
      failures,
      again_in_ms: waitMs,
      ...(error instanceof NotTaken ? error.why : { err: error }),
    };
    const level = failures === 1 ? 'warn' : 'debug';
    this.logger[level](about, `audit lines could not be delivered: ${messageOf(error)}`);
  }
}

/** The control plane stops. */
class Stopped extends Error {}
