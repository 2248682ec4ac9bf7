import type { Ids } from '../../../shared/ids.js';
import { DAY_MS, HOUR_MS } from '../../../shared/time.js';
import { query } from '../../store/sql.js';
import { StoreUnavailable, type Tx } from '../../store/store.js';
import type { Platform } from '../system/platform.js';
import { hashToken } from './tokens.js';

const SESSION_MS = 30 * DAY_MS;
/** The end of a session moves with each use. To save writes, it is stored only once it has moved by this much. */
const SLIDE_GRAIN_MS = HOUR_MS;
const PREFIX = 'ses_';

/**
 * Opens a session, which ends 30 days after its last use. `network` is the network that the user signs in from. The token is `ses_`
 * and 64 hexadecimal digits; only this answer has it.
 */
export function openSession(tx: Tx, ids: Ids, userId: string, network: string): { token: string; expiresAt: number } {
  const token = PREFIX + ids.hex(32);
  const expiresAt = tx.now + SESSION_MS;
  tx.run(
    query.insertInto('sessions').values({
      id: ids.uuid(),
      user_id: userId,
      token_hash: hashToken(token),
      created_at: tx.now,
      expires_at: expiresAt,
      network,
    }),
  );
  return { token, expiresAt };
}

export interface FoundSession {
  id: string;
  userId: string;
  email: string;
  is_operator: 0 | 1;
  expires_at: number;
}

/** Returns the session with this hash of its token, which can have expired, or undefined. */
export function findSession(tx: Tx, hash: string): FoundSession | undefined {
  return tx.get(
    query
      .selectFrom('sessions')
      .innerJoin('users', 'users.id', 'sessions.user_id')
      .select(['sessions.id', 'sessions.expires_at', 'users.id as userId', 'users.email', 'users.is_operator'])
      .where('token_hash', '=', hash),
  );
}

/**
 * Moves the end of a session that was used. If the database cannot be written, a later use does it, because requests that only
 * read must still work.
 */
export function prolongSession({ store, clock }: Platform, session: FoundSession): void {
  const expires_at = clock.now() + SESSION_MS;
  if (session.expires_at >= expires_at - SLIDE_GRAIN_MS) return;
  try {
    store.transact((tx) => tx.run(query.updateTable('sessions').set({ expires_at }).where('id', '=', session.id)));
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
  }
}

/** Tells whether the account with an e-mail address has an unexpired session that was opened from this network. */
export function hasSessionFrom({ store }: Platform, email: string, network: string): boolean {
  const session = query
    .selectFrom('sessions')
    .innerJoin('users', 'users.id', 'sessions.user_id')
    .select('sessions.id')
    .where('email', '=', email)
    .where('network', '=', network)
    .limit(1);
  return store.transact((tx) => tx.get(session.where('expires_at', '>', tx.now)) !== undefined);
}
