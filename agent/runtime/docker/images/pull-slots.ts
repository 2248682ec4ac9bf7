/** Limits how many pulls run at once; the others wait in order of arrival. */
export class PullSlots {
  private free: number;
  private readonly waiting: (() => void)[] = [];

  constructor(slots: number) {
    this.free = slots;
  }

  /**
   * Waits for a slot; calls `onWait` if none is free yet. Resolves to a function that frees the slot. Rejects with the
   * abort reason of `signal`.
   */
  async take(signal: AbortSignal, onWait: () => void = () => {}): Promise<() => void> {
    signal.throwIfAborted();
    if (this.free > 0) this.free--;
    else {
      onWait();
      await this.wait(signal);
    }
    return () => this.giveOn();
  }

  private wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.waiting.splice(this.waiting.indexOf(take), 1);
        reject(signal.reason as Error);
      };
      const take = () => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
      this.waiting.push(take);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  private giveOn(): void {
    const next = this.waiting.shift();
    if (next) next();
    else this.free++;
  }
}
