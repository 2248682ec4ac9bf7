import type { Clock } from '../../shared/clock.js';
import type { PaidTime } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { MINUTE_MS } from '../../shared/time.js';

/** How long a workload keeps running after its paid time is over while nothing comes from the control plane. */
export const UNPAID_GRACE_MS = 5 * MINUTE_MS;

/** Stores paid times across restarts of the agent. */
export interface PaidTimeStore {
  meta(key: 'paid_times'): string | undefined;
  setMeta(key: 'paid_times', value: string): void;
}

/**
 * Tracks for how long instances are paid, as the control plane last said. It counts down by the monotonic clock while the agent
 * runs, so setting the wall clock ends no workload. Under a control plane that never sends paid times, everything counts as
 * paid.
 */
export class PaidTimes {
  /** By instance: milliseconds left; negative: milliseconds since the paid time ended. */
  private left: Map<string, number> | undefined;
  private countedAt: number;

  constructor(
    private readonly store: PaidTimeStore,
    private readonly clock: Clock,
  ) {
    const kept = store.meta('paid_times');
    if (kept !== undefined) this.left = new Map(JSON.parse(kept) as [string, number][]);
    this.countedAt = clock.monotonic();
  }

  /** Takes the paid times that the control plane has sent, which count from now on. */
  hear(told: readonly PaidTime[]): void {
    this.count([...(this.left?.keys() ?? [])]);
    this.left ??= new Map();
    for (const { instanceId, paidMs } of told) this.left.set(instanceId, paidMs);
    this.save();
  }

  /** Counts down the instances that should run and forgets the others. An instance that was never told of has no time left. */
  count(instanceIds: readonly string[]): void {
    const now = this.clock.monotonic();
    const passed = now - this.countedAt;
    this.countedAt = now;
    const { left } = this;
    if (!left) return;
    this.left = new Map(instanceIds.map((id) => [id, left.has(id) ? (left.get(id) ?? 0) - passed : 0]));
    this.save();
  }

  /** Tells whether the paid time and its grace are over, and no new paid time has come since. */
  isOver(instanceId: string): boolean {
    return (this.left?.get(instanceId) ?? 0) <= -UNPAID_GRACE_MS;
  }

  private save(): void {
    this.store.setMeta('paid_times', JSON.stringify([...(this.left ?? [])]));
  }
}
