import type { Clock } from '../../shared/clock.js';
import { TokenBucket } from '../domain/token-bucket.js';

/** The refused calls that one address can make at once, and per second after that. */
const BURST = 200;
const PER_SECOND = 5;
/** The number of addresses remembered at once. */
const MOST_ADDRESSES = 10_000;

/** Limits the refused calls of an address. Beyond the limit its calls are rejected before they cost any work. */
export class RefusalLimiter {
  /** Ordered by the last call, newest last. */
  private readonly allowances = new Map<string, TokenBucket>();

  constructor(private readonly clock: Clock) {}

  /** Returns whether to process a call of `address:port`. The call counts as refused until {@link succeeded} is called. */
  admits(peer: string): boolean {
    return this.of(peer).take(1, this.clock.monotonic());
  }

  /** Takes back the count of a call that was not refused. */
  succeeded(peer: string): void {
    this.of(peer).give(1);
  }

  private of(peer: string): TokenBucket {
    const address = peer.replace(/:\d+$/, '');
    const allowance = this.allowances.get(address) ?? new TokenBucket(BURST, PER_SECOND);
    this.allowances.delete(address);
    this.allowances.set(address, allowance);
    const [oldest] = this.allowances.keys();
    if (this.allowances.size > MOST_ADDRESSES && oldest !== undefined) this.allowances.delete(oldest);
    return allowance;
  }
}
