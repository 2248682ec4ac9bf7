import type { Clock } from '../../../shared/clock.js';
import { recent } from '../../../shared/recent.js';
import { TokenBucket } from '../../domain/token-bucket.js';

/** What a host may tell of one instance: a deploy with each tenth of its image at once, then one event every ten seconds. */
const BURST = 20;
const A_SECOND = 0.1;
/** The instances whose budget is remembered; others have the whole budget again. */
const MOST_INSTANCES = 20_000;

/** What hosts may tell of each instance. */
export class HostBudgets {
  private readonly budgets = recent<TokenBucket>(MOST_INSTANCES);

  constructor(private readonly clock: Clock) {}

  /**
   * Tells whether a host may add an event to the timeline of an instance. Without this, a host could push everything else out of the
   * timeline, and make its organization's stream expire for readers that are slower.
   */
  mayTell(instanceId: string): boolean {
    const budget = this.budgets.get(instanceId) ?? new TokenBucket(BURST, A_SECOND);
    this.budgets.set(instanceId, budget);
    return budget.take(1, this.clock.monotonic());
  }
}

export interface HasHostBudgets {
  hostBudgets: HostBudgets;
}
