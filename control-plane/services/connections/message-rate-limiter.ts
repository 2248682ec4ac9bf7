import { TokenBucket } from '../../domain/token-bucket.js';

const FACTS_BURST = 4_000;
const FACTS_A_SECOND = 200;
const LOGS_BURST = 20_000;
const LOGS_A_SECOND = 2_000;

/**
 * What one host may say, over all of its streams, in units of a message or four KiB. An honest one repeats its results and reports
 * at once when it connects, and after that says something now and then; its logs come at a mebibyte a second.
 */
export class MessageRateLimiter {
  private readonly facts = new TokenBucket(FACTS_BURST, FACTS_A_SECOND);
  private readonly logs = new TokenBucket(LOGS_BURST, LOGS_A_SECOND);

  /** False where the host says more than any honest one; `now` in monotonic milliseconds. */
  allows(what: 'facts' | 'logs', units: number, now: number): boolean {
    return this[what].take(units, now);
  }
}
