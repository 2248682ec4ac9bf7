import {
  MOST_REQUESTS,
  REQUEST_MS,
  REQUEST_TRIES,
  type FactorPurpose,
} from '../../../domain/identity/second-factor.js';
import { Refusal } from '../../../domain/refusal.js';
import type { Row } from '../../../store/schema.js';
import { compileOnce, insertRow, query, sql, updateRows } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import type { Core } from '../../system/platform.js';
import { hashToken } from '../../secrets/tokens.js';

export type FactorRequest = Row<'factor_requests'>;
type NewRequest = Pick<FactorRequest, 'purpose' | 'user_id'> & Partial<FactorRequest>;

const TOKEN_PREFIX = 'fac_';

/** Records what a user has begun. It ends after ten minutes, and with the tenth later request of the user for the same purpose. */
export function addFactorRequest(tx: Tx, request: NewRequest): FactorRequest {
  const { user_id, purpose } = request;
  for (const { id } of tx.all(tooOld({ user_id, purpose }))) endFactorRequest(tx, id);
  const nothing = {
    session_id: null,
    token_hash: null,
    challenge: null,
    secret_encrypted: null,
    issuer: null,
    tries: 0,
  };
  const row = { id: tx.id(), ...nothing, created_at: tx.now, expires_at: tx.now + REQUEST_MS, ...request };
  tx.run(insertRow('factor_requests', row));
  return row;
}

export function endFactorRequest(tx: Tx, id: string): void {
  tx.run(query.deleteFrom('factor_requests').where('id', '=', id));
}

/** Ends everything that a user has begun: a changed password or a removed factor leaves none of it open. */
export function endFactorRequestsOf(tx: Tx, userId: string): void {
  tx.run(query.deleteFrom('factor_requests').where('user_id', '=', userId));
}

/** Ends the sign-ins of a user that an issuer has begun and that wait for a second factor. */
export function endFactorRequestsAt(tx: Tx, userId: string, issuer: string): void {
  tx.run(query.deleteFrom('factor_requests').where('user_id', '=', userId).where('issuer', '=', issuer));
}

/** Returns 256 random bits in base64url: what a passkey signs. */
export function newChallenge({ ids }: Pick<Core, 'ids'>): string {
  return Buffer.from(ids.hex(32), 'hex').toString('base64url');
}

/** Returns a new token with which a sign-in goes on, and its hash. */
export function newFactorToken({ ids }: Pick<Core, 'ids'>): { token: string; token_hash: string } {
  const token = TOKEN_PREFIX + ids.hex(32);
  return { token, token_hash: hashToken(token) };
}

/**
 * Returns the sign-in with this token; `counted`: also if the try that goes on was the last. Refuses with FACTOR_TOKEN_INVALID, the same
 * for an unknown, expired or spent token.
 */
export function getSignIn(tx: Tx, token: string, counted?: 'counted'): FactorRequest {
  const request = tx.get(byToken({ hash: hashToken(token) }));
  const most = counted ? REQUEST_TRIES + 1 : REQUEST_TRIES;
  if (request?.purpose !== 'sign_in' || request.expires_at <= tx.now || request.tries >= most)
    throw new Refusal(
      'FACTOR_TOKEN_INVALID',
      'this sign-in is over: its factor_token is wrong, or it was used or has expired; sign in again',
    );
  return request;
}

/** Finds what a user has begun in a session, by its challenge; undefined: nothing, or it is over. */
export function findByChallenge(
  tx: Tx,
  { userId, sessionId }: { userId: string; sessionId: string },
  purpose: FactorPurpose,
  challenge: string,
): FactorRequest | undefined {
  return tx
    .all(requestsOf({ userId, purpose }))
    .find((row) => row.challenge === challenge && row.session_id === sessionId && row.expires_at > tx.now);
}

/** Counts a try, before the answer is looked at, so that many at once count, too. */
export function countTry(tx: Tx, { id, tries }: FactorRequest): void {
  tx.run(updateRows('factor_requests', { tries: tries + 1 }, { id }));
}

export function setChallenge(tx: Tx, { id }: FactorRequest, challenge: string | null): void {
  tx.run(updateRows('factor_requests', { challenge }, { id }));
}

const requestsOf = compileOnce(({ userId, purpose }: { userId: string; purpose: FactorPurpose }) =>
  query
    .selectFrom('factor_requests')
    .selectAll()
    .where('user_id', '=', userId)
    .where('purpose', '=', purpose)
    .orderBy('created_at', 'desc')
    .limit(sql.lit(MOST_REQUESTS)),
);

const tooOld = compileOnce(({ user_id, purpose }: { user_id: string; purpose: FactorPurpose }) =>
  query
    .selectFrom('factor_requests')
    .select('id')
    .where('user_id', '=', user_id)
    .where('purpose', '=', purpose)
    .orderBy('created_at', 'desc')
    .limit(sql.lit(-1))
    .offset(sql.lit(MOST_REQUESTS - 1)),
);

const byToken = compileOnce(({ hash }: { hash: string }) =>
  query.selectFrom('factor_requests').selectAll().where('token_hash', '=', hash),
);
