import { updateRows } from '../../store/sql.js';
import type { Store } from '../../store/store.js';

/** When a session was last used, in milliseconds since 1970 UTC, and from which network. */
export interface SessionUse {
  at: number;
  network: string;
}

/**
 * Keeps in memory when each API key and each session was last used. A worker writes the times every second; reads must merge them with
 * `latest` and `latestOfSession`.
 */
export class LastUsed {
  private unwritten = new Map<string, number>();
  private unwrittenSessions = new Map<string, SessionUse>();

  /** Notes a use. `at` is in milliseconds since 1970 UTC. */
  touch(keyId: string, at: number): void {
    this.unwritten.set(keyId, at);
  }

  touchSession(sessionId: string, use: SessionUse): void {
    this.unwrittenSessions.set(sessionId, use);
  }

  latest(keyId: string, stored: number | null): number | null {
    return this.unwritten.get(keyId) ?? stored;
  }

  /** Returns a use that is not written yet; undefined: the stored one is the last. */
  latestOfSession(sessionId: string): SessionUse | undefined {
    return this.unwrittenSessions.get(sessionId);
  }

  /** Writes the times to the database. Returns the number of keys and sessions written. */
  flush(store: Store): { written: number } {
    const [written, sessions] = [this.unwritten, this.unwrittenSessions];
    if (written.size === 0 && sessions.size === 0) return { written: 0 };
    store.transact((tx) => {
      for (const [id, at] of written) {
        tx.run(updateRows('api_keys', { last_used_at: at }, { id }));
      }
      for (const [id, { at, network }] of sessions) {
        const use = { last_used_at: at, last_network: network };
        tx.run(updateRows('sessions', use, { id }));
      }
    });
    this.unwritten = new Map();
    this.unwrittenSessions = new Map();
    return { written: written.size + sessions.size };
  }
}
