import { query } from '../../store/sql.js';
import type { Store } from '../../store/store.js';

/**
 * Keeps in memory when each API key was last used. A worker writes the times every second; reads must merge them with `latest`.
 */
export class LastUsed {
  private unwritten = new Map<string, number>();

  /** Notes a use. `at` is in milliseconds since 1970 UTC. */
  touch(keyId: string, at: number): void {
    this.unwritten.set(keyId, at);
  }

  latest(keyId: string, stored: number | null): number | null {
    return this.unwritten.get(keyId) ?? stored;
  }

  /** Writes the times to the database. Returns the number of keys written. */
  flush(store: Store): { written: number } {
    if (this.unwritten.size === 0) return { written: 0 };
    const written = this.unwritten;
    store.transact((tx) => {
      for (const [id, at] of written) {
        tx.run(query.updateTable('api_keys').set({ last_used_at: at }).where('id', '=', id));
      }
    });
    this.unwritten = new Map();
    return { written: written.size };
  }
}
