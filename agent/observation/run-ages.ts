import type { Clock } from '../../shared/clock.js';
import type { RunStart } from '../domain/ended-run.js';

/** A run of a workload: it began at `startedAt`, in milliseconds since 1970 by this host's wall clock. */
export interface Run {
  instanceId: string;
  startedAt: number;
}

/** Keeps the starts of runs until the host boots. */
export interface RunStarts {
  runStart(instanceId: string): RunStart | undefined;
  noteRunStart(instanceId: string, start: RunStart): void;
  /** Returns when the agent was about to start a run that it has not seen yet, in monotonic milliseconds. */
  startingSince(instanceId: string): number | undefined;
  noteStarting(instanceId: string, at: number): void;
  forgetRunStart(instanceId: string): void;
}

/** Docker's clock counts as set if it has moved by more than this against the monotonic clock. */
const NOTICED_MS = 10;

/**
 * Measures how long runs have lasted, which is what GPU time is charged by. It uses the wall clock once, when it first sees a run:
 * setting the wall clock after that changes nothing, also if the agent restarts.
 */
export class RunAges {
  /** By instance: the run that this process has seen up, and how long it had lasted then. */
  private readonly seen = new Map<string, { start: RunStart; ageMs: number }>();
  /** By instance: the run that this process has seen down, and when first, in monotonic milliseconds. */
  private readonly down = new Map<string, { startedAt: number; at: number }>();

  constructor(
    private readonly clock: Clock,
    private readonly starts: RunStarts,
    /** Returns by how much Docker's clock is ahead of this host's wall clock, in milliseconds, as far as that is known. */
    private readonly dockerAheadMs: () => number | undefined = () => undefined,
  ) {}

  /** Records that the agent is about to start a workload: the run that it sees next is not older. */
  startsNow(instanceId: string): void {
    this.starts.noteStarting(instanceId, Math.floor(this.clock.monotonic()));
  }

  /** Returns how long a run has lasted so far, in whole milliseconds. */
  ageOf(run: Run): number {
    const start = this.startOf(run) ?? this.foundStart(run);
    if (this.hasStepped(start)) {
      start.wallOffset = this.wallOffset();
      this.starts.noteRunStart(run.instanceId, start);
    }
    const ageMs = this.sinceStart(start);
    this.seen.set(run.instanceId, { start, ageMs });
    return ageMs;
  }

  /** Records that a run is down: it has ended by now. */
  noteDown({ instanceId, startedAt }: Run): void {
    if (this.down.get(instanceId)?.startedAt === startedAt) return;
    this.down.set(instanceId, { startedAt, at: this.clock.monotonic() });
  }

  /**
   * Returns how long an ended run has lasted, in whole milliseconds. If a clock was set after the run was last seen up, nobody knows
   * by how much `finishedAt` is wrong: then the run counts up to when it was last seen.
   */
  lasted(run: Run & { finishedAt: number }): number {
    this.noteDown(run);
    const { instanceId, startedAt, finishedAt } = run;
    const byWallClock = Math.max(finishedAt - startedAt, 0);
    const start = this.startOf(run);
    if (!start) return Math.min(byWallClock, this.sinceStarting(instanceId));
    const seen = this.seen.get(instanceId);
    const seenMs = seen?.start.startedAt === startedAt ? seen.ageMs : 0;
    if (this.hasStepped(start)) return seenMs;
    // Nobody knows whether it ended before or after a step too small to notice: the earlier end counts.
    const ms = Math.floor(finishedAt - Math.max(start.wallOffset, this.wallOffset()) - start.beganAt);
    const noticedAt = this.down.get(instanceId)?.at ?? this.clock.monotonic();
    return Math.min(Math.max(ms, seenMs), Math.max(Math.floor(noticedAt - start.beganAt), 0));
  }

  /** Returns when an ended run that has lasted `ms` ended, in monotonic milliseconds; undefined: it began before this boot. */
  endOf(run: Run, ms: number): number | undefined {
    const began = this.startOf(run)?.beganAt;
    return began === undefined ? undefined : began + ms;
  }

  /** Forgets a workload that is gone. */
  forget(instanceId: string): void {
    this.seen.delete(instanceId);
    this.down.delete(instanceId);
    this.starts.forgetRunStart(instanceId);
  }

  private startOf({ instanceId, startedAt }: Run): RunStart | undefined {
    const seen = this.seen.get(instanceId)?.start;
    const start = seen?.startedAt === startedAt ? seen : this.starts.runStart(instanceId);
    return start?.startedAt === startedAt ? start : undefined;
  }

  /** Finds when a new run began: by the wall clock, but neither before the agent was about to start it nor before this boot. */
  private foundStart({ instanceId, startedAt }: Run): RunStart {
    const now = this.clock.monotonic();
    const earliest = this.starts.startingSince(instanceId) ?? 0;
    const ageMs = Math.max(now + this.wallOffset() - startedAt, 0);
    const beganAt = Math.ceil(Math.min(Math.max(now - ageMs, earliest), now));
    const start = { startedAt, beganAt, wallOffset: this.wallOffset() };
    this.starts.noteRunStart(instanceId, start);
    return start;
  }

  private sinceStart({ beganAt }: RunStart): number {
    return Math.max(Math.floor(this.clock.monotonic() - beganAt), 0);
  }

  private sinceStarting(instanceId: string): number {
    const since = this.starts.startingSince(instanceId);
    return since === undefined ? Infinity : Math.floor(this.clock.monotonic() - since);
  }

  private hasStepped({ wallOffset }: RunStart): boolean {
    return Math.abs(this.wallOffset() - wallOffset) > NOTICED_MS;
  }

  /** Returns by how much Docker's clock is ahead of the monotonic clock, in milliseconds. */
  private wallOffset(): number {
    return Math.round(this.clock.now() - this.clock.monotonic() + (this.dockerAheadMs() ?? 0));
  }
}
