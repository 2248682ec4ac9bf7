import { sleep, type Clock } from '../../shared/clock.js';
import { wasInterrupted, type Ending, type Outage } from '../domain/exit.js';
import { Failure } from '../domain/failure.js';
import type { Journal } from '../journal/journal.js';
import type { DockerWatch } from '../runtime/workload.js';

/** For so long an exit is doubted: a Docker that goes down reports exits first. */
export const CONFIRM_MS = 3_000;
const KEPT_OUTAGES = 20;
const SEEN_EVERY_MS = 30_000;

/** The run of Docker that was seen last, and when. */
interface DockerRun {
  startedAt: number;
  seenAt: number;
}

/** What has gone away under workloads, the host or Docker, also while no agent ran: it tells an end from an interruption. */
export class Interruptions {
  private away: number | undefined;

  constructor(
    private readonly docker: DockerWatch,
    private readonly journal: Journal,
    private readonly clock: Clock,
  ) {}

  /** Whether Docker answered when it was last looked at. */
  get dockerAvailable(): boolean {
    return this.away === undefined;
  }

  /** Whether the host has booted since an agent last looked; so it seems where the journal is new. */
  isNewBoot(bootId: string): boolean {
    return this.journal.meta('boot_id') !== bootId;
  }

  /**
   * Remembers what was down when the host had booted, before anything was started again. A new journal knows of no other boot:
   * it goes by the time at which this one was.
   */
  noteBoot(boot: { id: string; at: number }, down: readonly Ending[]): void {
    const isKnown = this.journal.meta('boot_id') !== undefined;
    const before = down.filter(({ startedAt }) => isKnown || startedAt < boot.at);
    const runs = Object.fromEntries(before.map(({ instanceId, startedAt }) => [instanceId, startedAt]));
    this.journal.setMeta('before_boot', JSON.stringify(runs));
    this.journal.setMeta('boot_id', boot.id);
  }

  /** Docker has just gone. */
  lost(): void {
    this.away ??= this.clock.now();
  }

  /** Whether Docker answers now; remembers for how long it did not. */
  async look(): Promise<boolean> {
    if (!(await this.docker.isAvailable())) {
      this.lost();
      return false;
    }
    const now = this.clock.now();
    if (this.away !== undefined) this.remember({ from: this.away, to: now });
    this.away = undefined;
    const startedAt = await this.docker.startedAt();
    if (startedAt !== null) this.noteRun({ startedAt, seenAt: now });
    return true;
  }

  /** Whether what should run, and does not, is to be brought back. */
  wasInterrupted(ending: Ending): boolean {
    const beforeBoot = JSON.parse(this.journal.meta('before_boot') ?? '{}') as Record<string, number>;
    return wasInterrupted({ beforeBoot, outages: this.outages() }, ending);
  }

  /** The same, once the end is old enough to be believed. Throws Failure DOCKER_UNREACHABLE while it cannot be known. */
  async judge(ending: Ending, signal: AbortSignal): Promise<'ended' | 'interrupted'> {
    const age = this.clock.now() - ending.finishedAt;
    if (age < CONFIRM_MS) await sleep(this.clock, CONFIRM_MS, signal);
    if (!(await this.look())) throw new Failure('DOCKER_UNREACHABLE', 'Docker does not answer');
    return this.wasInterrupted(ending) ? 'interrupted' : 'ended';
  }

  /** Another run than the one seen last: Docker was away in between, and somewhere in between took its containers down. */
  private noteRun(run: DockerRun): void {
    const last = JSON.parse(this.journal.meta('docker_run') ?? 'null') as DockerRun | null;
    if (last?.startedAt === run.startedAt && Math.abs(run.seenAt - last.seenAt) < SEEN_EVERY_MS) return;
    // A new journal knows of no earlier run: what ended before this one began is not known to have ended by itself.
    if (last?.startedAt !== run.startedAt)
      this.remember({ from: last?.seenAt ?? 0, to: last ? run.seenAt : run.startedAt });
    this.journal.setMeta('docker_run', JSON.stringify(run));
  }

  /** Kept over the agent's end: what went down in one may not be back up yet. */
  private remember({ from, to }: Outage): void {
    // The wall clock may have been set back in between.
    const outage = { from: Math.min(from, to), to: Math.max(from, to) };
    this.journal.setMeta('outages', JSON.stringify([...this.outages(), outage].slice(-KEPT_OUTAGES)));
  }

  private outages(): Outage[] {
    return JSON.parse(this.journal.meta('outages') ?? '[]') as Outage[];
  }
}
