import { sleep, type Clock } from '../../shared/clock.js';
import { wasKilledBy, type ExitedRun, type Outage } from '../domain/exit.js';
import { Failure } from '../domain/failure.js';
import type { Journal } from '../journal/journal.js';
import type { DockerWatch, Runtime } from '../runtime/workload.js';
import type { HaltedRuns, Runs } from './halted-runs.js';

/** How long an exit is doubted: a Docker that goes down reports exits first. */
export const CONFIRM_MS = 3_000;
const SEEN_EVERY_MS = 30_000;

type RunKey = Pick<ExitedRun, 'instanceId' | 'startedAt'>;

/** The run of the Docker daemon that was last seen, and when. */
interface DockerRun {
  /** In milliseconds since 1970; 0 where the host does not tell. */
  startedAt: number;
  seenAt: number;
  /** Whether workloads outlive it (live-restore); undefined where an older agent has recorded it. */
  keepsWorkloads?: boolean;
}

/**
 * Tracks outages of the host and of Docker, also while no agent ran. When Docker is back, it marks the runs that the outage
 * killed, so that an interruption is told from an end.
 */
export class OutageTracker {
  private away: number | undefined;
  /** The runs that the agent has stopped for a time. */
  private halted: Runs = {};

  constructor(
    private readonly docker: DockerWatch,
    private readonly runtime: Pick<Runtime, 'list' | 'find'>,
    private readonly journal: Journal,
    private readonly clock: Clock,
    private readonly haltedRuns: HaltedRuns,
    /** Called when Docker goes away and when it is back, so that the control plane learns it at once. */
    private readonly onChange: () => void = () => {},
  ) {}

  /** Tells whether Docker answered the last time that it was asked. */
  get dockerAvailable(): boolean {
    return this.away === undefined;
  }

  /** By how much Docker's clock is ahead of this host's, in milliseconds; undefined: not known. */
  get dockerAheadMs(): number | undefined {
    return this.docker.clockAheadMs;
  }

  /** Tells whether the host has booted since an agent last ran; also true with a new journal. */
  isNewBoot(bootId: string): boolean {
    const last = this.journal.meta('boot_id');
    // Agents up to 0.1.0 recorded only the kernel's part of the boot id.
    return last !== bootId && last !== bootId.split('/')[0];
  }

  /**
   * Marks workloads that are down because the host has booted, before anything is started again. A new journal knows no earlier
   * boot: it marks runs that began before this boot.
   */
  async noteBoot(boot: { id: string; at: number }): Promise<void> {
    const isKnown = this.journal.meta('boot_id') !== undefined;
    const down = await this.whatIsDown();
    this.mark(down.filter(({ startedAt }) => isKnown || startedAt < boot.at));
    this.journal.setMeta('boot_id', boot.id);
  }

  /** Records that Docker has just gone away. */
  lost(): void {
    if (this.away !== undefined) return;
    this.away = this.clock.now();
    this.onChange();
  }

  /** Tells whether Docker answers now. When it is back, marks the runs that went down with it. */
  async look(): Promise<boolean> {
    if (!(await this.docker.isAvailable())) {
      this.lost();
      return false;
    }
    const { away } = this;
    const startedAt = await this.docker.startedAt();
    const keepsWorkloads = await this.docker.keepsWorkloads();
    const run = { startedAt: startedAt ?? 0, seenAt: this.clock.now(), keepsWorkloads };
    const last = JSON.parse(this.journal.meta('docker_run') ?? 'null') as DockerRun | null;
    const outage = outageUntil(run, last, away);
    if (outage) this.mark((await this.whatIsDown()).filter((ending) => wasKilledBy(outage, ending)));
    // Where Docker has gone away again meanwhile, that outage stays open.
    if (this.away === away && away !== undefined) {
      this.away = undefined;
      this.onChange();
    }
    const isNews =
      last?.startedAt !== run.startedAt ||
      last.keepsWorkloads !== keepsWorkloads ||
      Math.abs(run.seenAt - last.seenAt) >= SEEN_EVERY_MS;
    if (isNews) this.journal.setMeta('docker_run', JSON.stringify(run));
    return true;
  }

  /**
   * Reads which runs an earlier agent has stopped for a time, once the journal knows all instances. Marks those that a lost journal
   * has forgotten.
   */
  async recallHalted(): Promise<void> {
    this.halted = this.ofKnown(await this.haltedRuns.read());
    const marks = this.marks();
    const runs = Object.entries(this.halted).map(([instanceId, startedAt]) => ({ instanceId, startedAt }));
    this.mark(runs.filter(({ instanceId }) => marks[instanceId] === undefined));
  }

  /**
   * Marks a run that the agent is about to stop for a time, and not for good. Rejects if only the journal has the mark, which then
   * does not outlive the journal.
   */
  async markHalted({ instanceId, startedAt }: RunKey): Promise<void> {
    this.mark([{ instanceId, startedAt }]);
    await this.noteHalted({ ...this.halted, [instanceId]: startedAt });
  }

  /** Removes the mark of a run that the agent wanted to stop for a time, and that goes on. */
  async unmarkHalted(run: RunKey): Promise<void> {
    if (!this.wasHalted(run)) return;
    const { [run.instanceId]: _mark, ...marks } = this.marks();
    this.journal.setMeta('interrupted', JSON.stringify(marks));
    const { [run.instanceId]: _run, ...others } = this.halted;
    await this.noteHalted(others);
  }

  /** Tells whether the agent has stopped a run for a time. */
  wasHalted({ instanceId, startedAt }: RunKey): boolean {
    return this.halted[instanceId] === startedAt;
  }

  /** Tells whether a run was interrupted, so that the agent must start the workload again. */
  wasInterrupted({ instanceId, startedAt }: ExitedRun): boolean {
    return this.marks()[instanceId] === startedAt;
  }

  /**
   * Tells whether a run ended or was interrupted, once the exit is older than CONFIRM_MS. Throws Failure DOCKER_UNREACHABLE
   * while
   * that cannot be known.
   */
  async judge(ending: ExitedRun, signal: AbortSignal): Promise<'ended' | 'interrupted'> {
    const age = this.clock.now() - ending.finishedAt;
    if (age < CONFIRM_MS) await sleep(this.clock, CONFIRM_MS, signal);
    if (!(await this.look())) throw new Failure('DOCKER_UNREACHABLE', 'Docker does not answer');
    return this.wasInterrupted(ending) ? 'interrupted' : 'ended';
  }

  private mark(endings: readonly RunKey[]): void {
    if (endings.length === 0) return;
    const marked = Object.fromEntries(endings.map(({ instanceId, startedAt }) => [instanceId, startedAt]));
    this.journal.setMeta('interrupted', JSON.stringify({ ...this.ofKnown(this.marks()), ...marked }));
  }

  private noteHalted(runs: Runs): Promise<void> {
    this.halted = this.ofKnown(runs);
    return this.haltedRuns.write(this.halted);
  }

  /** Returns the runs of instances that the journal knows. */
  private ofKnown(runs: Runs): Runs {
    const known = new Set(this.journal.instances().map(({ instanceId }) => instanceId));
    return Object.fromEntries(Object.entries(runs).filter(([instanceId]) => known.has(instanceId)));
  }

  /** Returns, by instance, the `startedAt` of its last interrupted run. Kept in the journal. */
  private marks(): Runs {
    return JSON.parse(this.journal.meta('interrupted') ?? '{}') as Runs;
  }

  /** Returns the stopped workloads, without those that Docker cannot inspect. */
  private async whatIsDown(): Promise<ExitedRun[]> {
    const stopped = (await this.runtime.list()).filter(({ state }) => state === 'stopped');
    const found = await Promise.all(
      stopped.map(({ instanceId }) => this.runtime.find(instanceId).catch(() => ({ state: 'absent' as const }))),
    );
    return found.filter((workload) => workload.state === 'stopped');
  }
}

/**
 * Returns the outage that `run`, compared with the `last` run that was seen, shows; undefined where it shows none that took
 * down
 * workloads. `away`: since when Docker is known to be away, which may have been noticed late.
 */
function outageUntil(run: DockerRun, last: DockerRun | null, away: number | undefined): Outage | undefined {
  const isSameRun = last?.startedAt === run.startedAt;
  const isTold = run.startedAt !== 0;
  // Under a Docker that kept running, or whose workloads outlive it, a workload that ended did so by itself.
  if (isTold && (isSameRun || last?.keepsWorkloads)) return undefined;
  if (isSameRun) return away === undefined ? undefined : { from: away, to: run.seenAt };
  // A new journal knows no earlier run of Docker, so whatever ended before this run may have been interrupted.
  if (!last) return { from: away ?? 0, to: away === undefined ? run.startedAt : run.seenAt };
  return { from: Math.min(away ?? Infinity, last.seenAt), to: run.seenAt };
}
