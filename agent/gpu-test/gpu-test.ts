import type { Clock, Timer } from '../../shared/clock.js';
import { messageOf } from '../../shared/coded-error.js';
import type { Logger } from '../../shared/logger.js';
import { MINUTE_MS } from '../../shared/time.js';
import {
  UNTESTED,
  judgeGpuTest,
  nextGpuTestMs,
  notTested,
  type GpuTestResult,
  type GpuVerdict,
} from '../domain/gpu-verdict.js';

/** A start that has failed still has its GPUs for a moment. */
const SOON_MS = 2_000;
/** What renters cause is tested at most this often. */
const LEAST_APART_MS = MINUTE_MS;
/** How often a test that somebody waits for is tried while no GPU is free. */
const MOST_TRIES = 10;
const NO_GPU = 'no GPU is free';
const NEVER = notTested('the agent has tested none since its start');

/** Starts containers with a GPU. */
export interface GpuStarter {
  /** Starts a container with this GPU, and removes it. Never rejects. */
  run(uuid: string): Promise<GpuTestResult>;
  /** Removes containers that a crash or an unanswered call has left. */
  prune(): Promise<void>;
  /** Returns a text that changes with Docker, the driver and the tools that give GPUs to containers. */
  mark(): Promise<string>;
}

/** Runs `work` with a GPU that nobody has, and which nobody gets meanwhile; undefined: there is none. */
export type Borrow = (work: (uuid: string) => Promise<GpuTestResult>) => Promise<GpuTestResult | undefined>;

/** Where the verdict outlives this process. */
export interface VerdictStorage {
  read(): string | undefined;
  write(text: string): void;
}

/**
 * Starts a container of the agent's own with a free GPU, to tell whether this host can start those of renters: at the start, after a
 * change of what it needs for that, after a start of a renter has failed, and on demand. Only its results keep new work away.
 */
export class GpuTest {
  private verdict: GpuVerdict;
  private latest = NEVER;
  private testing: Promise<GpuTestResult> | undefined;
  private planned: { timer: Timer; at: number } | undefined;
  private triesLeft = 0;
  private triedAt = -Infinity;
  private mark: string | undefined;
  private isStopped = false;

  constructor(
    /** null: this host has no GPUs that could fail. */
    private readonly starter: GpuStarter | null,
    private readonly borrow: Borrow,
    private readonly storage: VerdictStorage,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {
    const stored = starter ? storage.read() : undefined;
    this.verdict = stored === undefined ? UNTESTED : (JSON.parse(stored) as GpuVerdict);
  }

  /** Why this host takes nothing new; empty when it does. */
  get obstacle(): string {
    const { fault } = this.verdict;
    return fault === '' ? '' : `no container with a GPU starts on this host: ${fault}`;
  }

  /** The result of the latest test of this process. */
  get result(): GpuTestResult {
    return this.latest;
  }

  start(): void {
    this.want();
  }

  stop(): void {
    this.isStopped = true;
    this.planned?.timer.cancel();
  }

  /** Takes note that a container with GPUs has not started, which can be the renter's fault. */
  noteFailedStart(): void {
    this.want();
  }

  /** Tests again after a change of Docker, the driver or the toolkit. */
  async lookForChange(): Promise<void> {
    if (!this.starter) return;
    const mark = await this.starter.mark();
    const isChange = this.mark !== undefined && this.mark !== mark;
    this.mark = mark;
    if (isChange) this.want();
  }

  /** Tests now. Calls during a test share it. */
  test(): Promise<GpuTestResult> {
    this.testing ??= this.look().finally(() => (this.testing = undefined));
    return this.testing;
  }

  private want(): void {
    this.triesLeft = MOST_TRIES;
    this.plan(Math.max(this.triedAt + LEAST_APART_MS, this.clock.monotonic() + SOON_MS));
  }

  /** Plans a test, unless an earlier one is planned. `at`: in monotonic milliseconds. */
  private plan(at: number): void {
    if (!this.starter || this.isStopped || (this.planned && this.planned.at <= at)) return;
    this.planned?.timer.cancel();
    const timer = this.clock.schedule(at - this.clock.monotonic(), () => {
      this.planned = undefined;
      void this.test();
    });
    this.planned = { timer, at };
  }

  private async look(): Promise<GpuTestResult> {
    const { starter } = this;
    if (!starter) return notTested('this host has no GPUs that could fail');
    const result = await this.borrow((uuid) => starter.run(uuid)).catch((error: unknown) =>
      notTested(messageOf(error)),
    );
    this.triedAt = this.clock.monotonic();
    this.latest = result ?? notTested(NO_GPU);
    // The journal is closed by then.
    if (this.isStopped) return this.latest;
    this.take(this.latest);
    const isTried = this.latest.kind !== 'not tested';
    this.triesLeft = isTried ? 0 : this.triesLeft - 1;
    const nextMs = nextGpuTestMs(this.verdict, this.clock.now());
    if (this.triesLeft > 0) this.plan(this.triedAt + LEAST_APART_MS);
    else if (nextMs !== null) this.plan(this.triedAt + nextMs);
    return this.latest;
  }

  private take(result: GpuTestResult): void {
    const before = this.verdict;
    this.verdict = judgeGpuTest(before, result, this.clock.now());
    if (this.verdict === before) return;
    this.storage.write(JSON.stringify(this.verdict));
    if (result.kind === 'failed') this.logger.warn(`a test container with a GPU did not start: ${result.reason}`);
    if (before.fault === '' && this.verdict.fault !== '') this.logger.error(this.obstacle);
    if (before.fault !== '' && this.verdict.fault === '') this.logger.info('containers with a GPU start again');
  }
}
