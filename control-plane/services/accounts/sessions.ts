import type { Ids } from '../../../shared/ids.js';
import { DAY_MS, HOUR_MS } from '../../../shared/time.js';
import { query } from '../../store/sql.js';
import { StoreUnavailable, type Tx } from '../../store/store.js';
import type { Platform } from '../system/platform.js';
import { hashToken } from './tokens.js';

const SESSION_MS = 30 * DAY_MS;
/** A session's end slides, but is not written with every request. */
const SLIDE_GRAIN_MS = HOUR_MS;
const PREFIX = 'ses_';

/** Signs a user in for thirty days from its last use. `network` is where from. The token, `ses_` and 64 hexadecimal digits, is in this answer alone. */
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

/** The session of a token that has not expired. */
export function findSession(tx: Tx, token: string): FoundSession | undefined {
  return tx.get(
    query
      .selectFrom('sessions')
      .innerJoin('users', 'users.id', 'sessions.user_id')
      .select(['sessions.id', 'sessions.expires_at', 'users.id as userId', 'users.email', 'users.is_operator'])
      .where('token_hash', '=', hashToken(token))
      .where('expires_at', '>', tx.now),
  );
}

/** Prolongs a session by its use. Where that cannot be written now, a later use does it: what is only read is not refused for it. */
export function prolongSession({ store, clock }: Platform, session: FoundSession): void {
  const expires_at = clock.now() + SESSION_MS;
  if (session.expires_at >= expires_at - SLIDE_GRAIN_MS) return;
  try {
    store.transact((tx) => tx.run(query.updateTable('sessions').set({ expires_at }).where('id', '=', session.id)));
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
  }
}

/** Whether the account of an e-mail address has a session that was opened from this network. */
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
