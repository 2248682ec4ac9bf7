import type { Clock } from '../../shared/clock.js';

/** A run of a workload: it began at `startedAt`, in milliseconds since 1970 by this host's wall clock. */
export interface Run {
  instanceId: string;
  startedAt: number;
}

/**
 * Measures how long runs have lasted, which is what GPU time is charged by. Setting the wall clock after this agent has first
 * seen
 * a run changes nothing.
 */
export class RunAges {
  private readonly seen = new Map<string, { startedAt: number; ageMs: number; at: number }>();

  constructor(private readonly clock: Clock) {}

  /** Returns how long a run has lasted so far, in whole milliseconds. */
  ageOf({ instanceId, startedAt }: Run): number {
    const now = this.clock.monotonic();
    const known = this.seen.get(instanceId);
    if (known?.startedAt === startedAt) return Math.floor(known.ageMs + now - known.at);
    const ageMs = Math.max(this.clock.now() - startedAt, 0);
    this.seen.set(instanceId, { startedAt, ageMs, at: now });
    return Math.floor(ageMs);
  }

  /**
   * Returns how long an ended run has lasted: `ms`, its length by the wall clock, but at most its age since it was first seen.
   */
  lasted(run: Run, ms: number): number {
    const isKnown = this.seen.get(run.instanceId)?.startedAt === run.startedAt;
    return Math.max(isKnown ? Math.min(ms, this.ageOf(run)) : ms, 0);
  }

  /** Forgets a workload that is gone. */
  forget(instanceId: string): void {
    this.seen.delete(instanceId);
  }
}
