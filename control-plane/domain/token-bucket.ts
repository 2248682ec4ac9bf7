/** So much at once, and so much a second after that. */
export class TokenBucket {
  private left: number;
  private asOf: number | undefined;

  constructor(
    private readonly burst: number,
    private readonly perSecond: number,
  ) {
    this.left = burst;
  }

  /** Takes `amount` at `now`, in monotonic milliseconds; false where there is not so much left. */
  take(amount: number, now: number): boolean {
    const elapsed = Math.max(now - (this.asOf ?? now), 0);
    this.asOf = now;
    this.left = Math.min(this.left + (elapsed * this.perSecond) / 1_000, this.burst);
    if (this.left < amount) return false;
    this.left -= amount;
    return true;
  }

  /** Puts back what was taken in vain. */
  give(amount: number): void {
    this.left = Math.min(this.left + amount, this.burst);
  }
}
