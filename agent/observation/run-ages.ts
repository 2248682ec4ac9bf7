import type { Clock } from '../../shared/clock.js';

/** A run of a workload: it began at `startedAt`, in milliseconds since 1970 by this host's wall clock. */
export interface Run {
  instanceId: string;
  startedAt: number;
}

/**
 * For how long runs have lasted: what GPU time is charged by. A wall clock that is set after this agent has first seen a run
 * changes nothing.
 */
export class RunAges {
  private readonly seen = new Map<string, { startedAt: number; ageMs: number; at: number }>();

  constructor(private readonly clock: Clock) {}

  /** In whole milliseconds. */
  ageOf({ instanceId, startedAt }: Run): number {
    const now = this.clock.monotonic();
    const known = this.seen.get(instanceId);
    if (known?.startedAt === startedAt) return Math.floor(known.ageMs + now - known.at);
    const ageMs = Math.max(this.clock.now() - startedAt, 0);
    this.seen.set(instanceId, { startedAt, ageMs, at: now });
    return Math.floor(ageMs);
  }

  /** How long a run has lasted that is over, by the wall clock `ms`: no longer than since it was first seen. */
  lasted(run: Run, ms: number): number {
    const isKnown = this.seen.get(run.instanceId)?.startedAt === run.startedAt;
    return Math.max(isKnown ? Math.min(ms, this.ageOf(run)) : ms, 0);
  }

  /** The workload is gone. */
  forget(instanceId: string): void {
    this.seen.delete(instanceId);
  }
}
