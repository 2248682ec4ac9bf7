import type { AccountCaller } from '../../../domain/caller.js';
import { Refusal } from '../../../domain/refusal.js';
import { PROOF_MS } from '../../../domain/identity/second-factor.js';
import { query } from '../../../store/sql.js';
import type { Core, Platform } from '../../system/platform.js';
import { addFactorRequest, endFactorRequest, findByChallenge, newChallenge } from '../factors/factor-requests.js';
import { noteProof } from '../sessions/fresh-proof.js';
import { examineFactor, kindsOf, passkeysOf, type FactorAnswer } from '../factors/give-factor.js';
import { challengeIn, noPasskeys, requestOptions, type PasskeyAnswer } from '../factors/passkeys.js';
import { checkPasswordOn } from '../companies/password-off.js';
import { getUser } from '../users/users.js';

export type Proof = FactorAnswer & { password?: string };

/**
 * Records that the user of a session has proven who it is: with its password, and with a second factor if it has one; a passkey alone is
 * enough, because it asks for a finger or a PIN itself. Returns until when the proof is fresh. Refuses with INVALID_CREDENTIALS,
 * PASSWORD_OFF where the company has switched passwords off, SECOND_FACTOR_REQUIRED, FACTOR_INVALID and RATE_LIMITED.
 */
export async function prove(platform: Platform, caller: AccountCaller, given: Proof): Promise<{ provenUntil: number }> {
  const { store, passwords } = platform;
  const { password, passkey, ...codes } = given;
  const [user, kinds] = store.transact((tx) => [getUser(tx, caller.userId), kindsOf(tx, caller.userId)] as const);
  // A user without a factor has no passkey: then what is sent as one is not even looked at.
  const isPasskeyEnough = passkey !== undefined && password === undefined && kinds.length > 0;
  if (!isPasskeyEnough) {
    if (password === undefined || !(await passwords.verify(password, user.password_hash)))
      throw new Refusal('INVALID_CREDENTIALS', 'the password is missing or wrong');
    store.transact((tx) => checkPasswordOn(tx, user));
    if (kinds.length > 0 && !hasAnswer(given))
      throw new Refusal(
        'SECOND_FACTOR_REQUIRED',
        'give also your second factor: a code, a recovery code or a passkey',
        {
          factors: kinds,
        },
      );
  }
  const answer = passkey ? { passkey } : codes;
  const challenge = passkey ? takeChallenge(platform, caller, passkey) : null;
  const use = kinds.length > 0 ? await examineFactor(platform, user.id, answer, challenge) : undefined;
  return store.transact((tx) => {
    const now = tx.get(query.selectFrom('users').select('password_hash').where('id', '=', user.id));
    if (now?.password_hash !== user.password_hash || kindsOf(tx, user.id).join() !== kinds.join())
      throw new Refusal(
        'INVALID_CREDENTIALS',
        'the password or the second factors changed during this request; try again',
      );
    use?.(tx);
    noteProof(tx, caller, use !== undefined);
    return { provenUntil: tx.now + PROOF_MS };
  });
}

function hasAnswer({ code, recovery_code, passkey }: FactorAnswer): boolean {
  return code !== undefined || recovery_code !== undefined || passkey !== undefined;
}

/** Takes the challenge that a passkey has answered: it is answered once. Null: it is none of this session. */
function takeChallenge({ store }: Core, caller: AccountCaller, passkey: PasskeyAnswer): string | null {
  return store.transact((tx) => {
    const request = findByChallenge(tx, caller, 'proof', challengeIn(passkey));
    if (!request) return null;
    endFactorRequest(tx, request.id);
    return request.challenge;
  });
}

/** Returns what the browser is asked with for a proof by a passkey. Refuses with PASSKEYS_OFF and FACTOR_NOT_FOUND. */
export function passkeyRequestOfProof(platform: Platform, { userId, sessionId }: AccountCaller) {
  return platform.store.transact((tx) => {
    const known = passkeysOf(tx, userId);
    if (known.length === 0) throw noPasskeys();
    const challenge = newChallenge(platform);
    addFactorRequest(tx, { purpose: 'proof', user_id: userId, session_id: sessionId, challenge });
    return requestOptions(platform, challenge, known);
  });
}
