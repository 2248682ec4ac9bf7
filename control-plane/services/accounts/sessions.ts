import type { Ids } from '../../../shared/ids.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { hashToken } from './tokens.js';

const SESSION_MS = 30 * 24 * 60 * 60 * 1000;
/** A session's end slides, but is not written with every request. */
const SLIDE_GRAIN_MS = 60 * 60 * 1000;
const PREFIX = 'ses_';

/** Signs a user in for thirty days from its last use. The token, `ses_` and 64 hexadecimal digits, is in this answer alone. */
export function openSession(tx: Tx, ids: Ids, userId: string): { token: string; expiresAt: number } {
  const token = PREFIX + ids.hex(32);
  const expiresAt = tx.now + SESSION_MS;
  tx.run(
    query.insertInto('sessions').values({
      id: ids.uuid(),
      user_id: userId,
      token_hash: hashToken(token),
      created_at: tx.now,
      expires_at: expiresAt,
    }),
  );
  return { token, expiresAt };
}

export interface FoundSession {
  id: string;
  userId: string;
  email: string;
  is_operator: 0 | 1;
}

/** The session of a token that has not expired, prolonged by this use. */
export function useSession(tx: Tx, token: string): FoundSession | undefined {
  const session = tx.get(
    query
      .selectFrom('sessions')
      .innerJoin('users', 'users.id', 'sessions.user_id')
      .select(['sessions.id', 'sessions.expires_at', 'users.id as userId', 'users.email', 'users.is_operator'])
      .where('token_hash', '=', hashToken(token))
      .where('expires_at', '>', tx.now),
  );
  if (session && session.expires_at < tx.now + SESSION_MS - SLIDE_GRAIN_MS) {
    tx.run(
      query
        .updateTable('sessions')
        .set({ expires_at: tx.now + SESSION_MS })
        .where('id', '=', session.id),
    );
  }
  return session;
}
