import type { AccountCaller } from '../../../domain/caller.js';
import { Refusal } from '../../../domain/refusal.js';
import { PROOF_MS } from '../../../domain/identity/second-factor.js';
import { compileOnce, query, updateRows } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';

type SessionUser = Pick<AccountCaller, 'userId' | 'sessionId'>;

/**
 * Refuses with PROOF_REQUIRED if the user of a session has last proven who it is more than 15 minutes ago: with the password, a second
 * factor, or the sign-in of a company. For what no client of an older release asks for.
 */
export function checkFreshProof(tx: Tx, { sessionId }: SessionUser): void {
  const provenAt = tx.get(provenAtOf({ sessionId }))?.proven_at ?? null;
  // A clock that was set back leaves times in the future: they prove nothing.
  if (provenAt !== null && provenAt <= tx.now && tx.now - provenAt <= PROOF_MS) return;
  throw new Refusal(
    'PROOF_REQUIRED',
    'prove again who you are, and repeat this within 15 minutes: give your password, and a second factor if you have one; or sign in again, as with a company',
  );
}

/**
 * Refuses like {@link checkFreshProof}, but only users with a second factor. For what clients of older releases ask for, too: they cannot
 * give a proof, and their users have no factor.
 */
export function checkProofWithFactor(tx: Tx, caller: SessionUser): void {
  if (hasFactor(tx, caller.userId)) checkFreshProof(tx, caller);
}

/** Tells whether a user has a second factor. */
export function hasFactor(tx: Tx, userId: string): boolean {
  return tx.get(anyFactorOf({ userId })) !== undefined;
}

/** Records that the user of a session has just proven who it is; `isWithFactor`: with a second factor. */
export function noteProof(tx: Tx, { sessionId }: Pick<SessionUser, 'sessionId'>, isWithFactor: boolean): void {
  const proof = isWithFactor ? { proven_at: tx.now, factor_at: tx.now } : { proven_at: tx.now };
  tx.run(updateRows('sessions', proof, { id: sessionId }));
}

const provenAtOf = compileOnce(({ sessionId }: { sessionId: string }) =>
  query.selectFrom('sessions').select('proven_at').where('id', '=', sessionId),
);

const anyFactorOf = compileOnce(({ userId }: { userId: string }) =>
  query.selectFrom('second_factors').select('id').where('user_id', '=', userId).limit(1),
);
