/** A token bucket: holds at most `burst` tokens and gains `perSecond`. */
export class TokenBucket {
  private left: number;
  private asOf: number | undefined;

  constructor(
    private readonly burst: number,
    private readonly perSecond: number,
  ) {
    this.left = burst;
  }

  /** Takes `amount` at `now` (monotonic milliseconds). Returns false, and takes nothing, if fewer tokens are left. */
  take(amount: number, now: number): boolean {
    const elapsed = Math.max(now - (this.asOf ?? now), 0);
    this.asOf = now;
    this.left = Math.min(this.left + (elapsed * this.perSecond) / 1_000, this.burst);
    if (this.left < amount) return false;
    this.left -= amount;
    return true;
  }

  /** Puts back tokens whose use did not count after all. */
  give(amount: number): void {
    this.left = Math.min(this.left + amount, this.burst);
  }
}
