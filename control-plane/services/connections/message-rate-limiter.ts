import { TokenBucket } from '../../domain/token-bucket.js';

const FACTS_BURST = 4_000;
const FACTS_A_SECOND = 200;
const LOGS_BURST = 20_000;
const LOGS_A_SECOND = 2_000;

/**
 * Limits the messages of one host, over all of its streams. A unit is one message or 4 KiB. The burst is for an honest agent that
 * connects and repeats its results and reports at once; afterwards it sends few messages, and logs at up to 1 MiB a second.
 */
export class MessageRateLimiter {
  private readonly facts = new TokenBucket(FACTS_BURST, FACTS_A_SECOND);
  private readonly logs = new TokenBucket(LOGS_BURST, LOGS_A_SECOND);

  /** Returns false if the host sends more than any honest agent would. `now` is in monotonic milliseconds. */
  allows(what: 'facts' | 'logs', units: number, now: number): boolean {
    return this[what].take(units, now);
  }
}
