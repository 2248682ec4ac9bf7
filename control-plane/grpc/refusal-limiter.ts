import type { Clock } from '../../shared/clock.js';
import { TokenBucket } from '../domain/token-bucket.js';

/** Refused calls of one address: so many at once, and so many a second after that. */
const BURST = 200;
const PER_SECOND = 5;
/** Addresses that are remembered at once. */
const MOST_ADDRESSES = 10_000;

/** Bounds how many calls of one address are refused: beyond that they are turned away before they cost anything. */
export class RefusalLimiter {
  /** The address that called last comes last. */
  private readonly allowances = new Map<string, TokenBucket>();

  constructor(private readonly clock: Clock) {}

  /** Whether a call of `address:port` may be looked at. It counts as refused until it has succeeded. */
  admits(peer: string): boolean {
    return this.of(peer).take(1, this.clock.monotonic());
  }

  /** It was not refused. */
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
