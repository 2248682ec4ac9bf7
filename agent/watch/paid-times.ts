import type { Clock } from '../../shared/clock.js';
import type { PaidTime } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { MINUTE_MS } from '../../shared/time.js';

/** For so long a workload goes on whose paid time is over while nothing is heard of the control plane. */
export const UNPAID_GRACE_MS = 5 * MINUTE_MS;

/** Where paid times outlive the agent. */
export interface PaidTimeStore {
  meta(key: 'paid_times'): string | undefined;
  setMeta(key: 'paid_times', value: string): void;
}

/**
 * For how long instances are paid for, as the control plane has said last. Counted down by the monotonic clock while the agent
 * runs, so that a wall clock that is set ends nobody's workload. Under a control plane that never says anything, all are paid for.
 */
export class PaidTimes {
  /** Milliseconds that are left; negative: that have passed since. */
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

  /** The control plane has said for how long instances are paid for from now on. */
  hear(told: readonly PaidTime[]): void {
    this.count([...(this.left?.keys() ?? [])]);
    this.left ??= new Map();
    for (const { instanceId, paidMs } of told) this.left.set(instanceId, paidMs);
    this.save();
  }

  /** Counts the time that has passed for the instances that are to run, and forgets the others. One never told of has none. */
  count(instanceIds: readonly string[]): void {
    const now = this.clock.monotonic();
    const passed = now - this.countedAt;
    this.countedAt = now;
    const { left } = this;
    if (!left) return;
    this.left = new Map(instanceIds.map((id) => [id, left.has(id) ? (left.get(id) ?? 0) - passed : 0]));
    this.save();
  }

  /** Whether its paid time and the grace are over, and nothing was heard since. */
  isOver(instanceId: string): boolean {
    return (this.left?.get(instanceId) ?? 0) <= -UNPAID_GRACE_MS;
  }

  private save(): void {
    this.store.setMeta('paid_times', JSON.stringify([...(this.left ?? [])]));
  }
}
