import type { Clock } from '../../../shared/clock.js';
import { recent } from '../../../shared/recent.js';
import { TokenBucket } from '../../domain/token-bucket.js';

/** Hosts beyond these begin anew. */
const MOST_HOSTS = 50_000;
/** An honest agent sends one report of a kind a minute, and while it has more to send, one every ten seconds. */
const REPORTS_BURST = 12;
const REPORTS_A_SECOND = 0.2;

/** How many reports of one kind are taken from each host. What a host sends beyond that is dropped. */
export class ReportBudget {
  private readonly buckets = recent<TokenBucket>(MOST_HOSTS);

  constructor(private readonly clock: Pick<Clock, 'monotonic'>) {}

  /** Tells whether a host may send one more report now. */
  admits(machineId: string): boolean {
    const bucket = this.buckets.get(machineId) ?? new TokenBucket(REPORTS_BURST, REPORTS_A_SECOND);
    this.buckets.set(machineId, bucket);
    return bucket.take(1, this.clock.monotonic());
  }
}
