import { sleep, type Clock } from '../../shared/clock.js';
import { wasKilledBy, type ExitedRun, type Outage } from '../domain/exit.js';
import { Failure } from '../domain/failure.js';
import type { Journal } from '../journal/journal.js';
import type { DockerWatch, Runtime } from '../runtime/workload.js';

/** For so long an exit is doubted: a Docker that goes down reports exits first. */
export const CONFIRM_MS = 3_000;
const SEEN_EVERY_MS = 30_000;

/** The run of Docker that was seen last, and when. */
interface DockerRun {
  /** 0 where the host does not tell. */
  startedAt: number;
  seenAt: number;
  /** Whether its workloads outlive it; unknown where an older agent has seen it. */
  keepsWorkloads?: boolean;
}

/**
 * What has gone away under workloads, the host or Docker, also while no agent ran. The runs that it took down are marked when
 * it is back, so that an interruption is told from an end.
 */
export class OutageTracker {
  private away: number | undefined;

  constructor(
    private readonly docker: DockerWatch,
    private readonly runtime: Pick<Runtime, 'list' | 'find'>,
    private readonly journal: Journal,
    private readonly clock: Clock,
    /** Called when Docker is gone, and when it is back: the market is to know at once. */
    private readonly onChange: () => void = () => {},
  ) {}

  /** Whether Docker answered when it was last looked at. */
  get dockerAvailable(): boolean {
    return this.away === undefined;
  }

  /** Whether the host has booted since an agent last looked; so it seems where the journal is new. */
  isNewBoot(bootId: string): boolean {
    const last = this.journal.meta('boot_id');
    // An agent up to 0.1.0 has noted the kernel's part alone.
    return last !== bootId && last !== bootId.split('/')[0];
  }

  /**
   * Marks what was down when the host had booted, before anything was started again. A new journal knows of no other boot: it
   * goes by the time at which this one was.
   */
  async noteBoot(boot: { id: string; at: number }): Promise<void> {
    const isKnown = this.journal.meta('boot_id') !== undefined;
    const down = await this.whatIsDown();
    this.mark(down.filter(({ startedAt }) => isKnown || startedAt < boot.at));
    this.journal.setMeta('boot_id', boot.id);
  }

  /** Docker has just gone. */
  lost(): void {
    if (this.away !== undefined) return;
    this.away = this.clock.now();
    this.onChange();
  }

  /** Whether Docker answers now; when it is back, marks what went down with it. */
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
    // Gone again meanwhile, it is still to be looked at.
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

  /** The agent is about to stop this run for a time, and not for good. */
  markStopped(run: Pick<ExitedRun, 'instanceId' | 'startedAt'>): void {
    this.mark([run]);
  }

  /** Whether what should run, and does not, is to be brought back. */
  wasInterrupted({ instanceId, startedAt }: ExitedRun): boolean {
    return this.marks()[instanceId] === startedAt;
  }

  /** The same, once the end is old enough to be believed. Throws Failure DOCKER_UNREACHABLE while it cannot be known. */
  async judge(ending: ExitedRun, signal: AbortSignal): Promise<'ended' | 'interrupted'> {
    const age = this.clock.now() - ending.finishedAt;
    if (age < CONFIRM_MS) await sleep(this.clock, CONFIRM_MS, signal);
    if (!(await this.look())) throw new Failure('DOCKER_UNREACHABLE', 'Docker does not answer');
    return this.wasInterrupted(ending) ? 'interrupted' : 'ended';
  }

  private mark(endings: readonly Pick<ExitedRun, 'instanceId' | 'startedAt'>[]): void {
    if (endings.length === 0) return;
    const marked = endings.map(({ instanceId, startedAt }) => [instanceId, startedAt]);
    const known = new Set(this.journal.instances().map(({ instanceId }) => instanceId));
    const kept = Object.entries(this.marks()).filter(([instanceId]) => known.has(instanceId));
    this.journal.setMeta('interrupted', JSON.stringify(Object.fromEntries([...kept, ...marked])));
  }

  /** The run of each instance that was interrupted last, by the moment at which it began. Outlives the agent. */
  private marks(): Record<string, number> {
    return JSON.parse(this.journal.meta('interrupted') ?? '{}') as Record<string, number>;
  }

  /** One that cannot be looked at holds up no other. */
  private async whatIsDown(): Promise<ExitedRun[]> {
    const stopped = (await this.runtime.list()).filter(({ state }) => state === 'stopped');
    const found = await Promise.all(
      stopped.map(({ instanceId }) => this.runtime.find(instanceId).catch(() => ({ state: 'absent' as const }))),
    );
    return found.filter((workload) => workload.state === 'stopped');
  }
}

/**
 * What a look at Docker's present run tells, after the one that was seen last: since when it had been away, and had taken workloads
 * down, if it had. `away`: since when it is known to be away; that may have been noticed late.
 */
function outageUntil(run: DockerRun, last: DockerRun | null, away: number | undefined): Outage | undefined {
  const isSameRun = last?.startedAt === run.startedAt;
  const isTold = run.startedAt !== 0;
  // What ended under a Docker that went on, or whose workloads go on without it, has ended by itself.
  if (isTold && (isSameRun || last?.keepsWorkloads)) return undefined;
  if (isSameRun) return away === undefined ? undefined : { from: away, to: run.seenAt };
  // A new journal knows of no earlier run: what was down before this one is not known to have ended by itself.
  if (!last) return { from: away ?? 0, to: away === undefined ? run.startedAt : run.seenAt };
  return { from: Math.min(away ?? Infinity, last.seenAt), to: run.seenAt };
}
