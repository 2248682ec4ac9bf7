import { StoreUnavailable, type Store } from './store/store.js';
import type { DiskRoom } from './store/disk-room.js';

/** What a start has to write. On a full disk it is put off: until then the control plane reads, and serves no hosts. */
export class PutOffWrites {
  private readonly waiting: (() => void)[] = [];

  constructor(
    private readonly store: Pick<Store, 'share'>,
    private readonly room: Pick<DiskRoom, 'isFull'>,
  ) {}

  get isWaiting(): boolean {
    return this.waiting.length > 0;
  }

  /** Calls `write`, or puts it off if the disk is full, or something before it waits. */
  attempt(write: () => void): void {
    if (this.isWaiting || !this.succeeds(write)) this.waiting.push(write);
  }

  /** Does what waits, in its order, as far as the disk allows. */
  tryAgain(): void {
    for (let [next] = this.waiting; next; [next] = this.waiting) {
      if (!this.succeeds(next)) return;
      this.waiting.shift();
    }
    if (!this.room.isFull) this.store.share();
  }

  private succeeds(write: () => void): boolean {
    try {
      write();
      return true;
    } catch (error) {
      if (error instanceof StoreUnavailable && this.room.isFull) return false;
      throw error;
    }
  }
}
