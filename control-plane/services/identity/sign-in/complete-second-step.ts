import type { Tx } from '../../../store/store.js';
import type { Platform } from '../../system/platform.js';
import { firstOrganization } from '../users/users.js';
import type { SignedIn } from './sign-in.js';
import { countTry, endFactorRequest, getSignIn, setChallenge, type FactorRequest } from '../factors/factor-requests.js';
import { examineFactor, type FactorAnswer } from '../factors/give-factor.js';
import { openSession, vouchedNow, type SessionOrigin } from '../sessions/sessions.js';
import { noteSignIn } from '../sessions/sign-in-networks.js';
import { getUser } from '../users/users.js';

/**
 * Opens a session for somebody who has given the right password and now gives a second factor. Refuses with FACTOR_TOKEN_INVALID, also
 * after five wrong answers, with FACTOR_INVALID, and with RATE_LIMITED.
 */
export async function completeSignIn(
  platform: Platform,
  factorToken: string,
  answer: FactorAnswer,
  origin: SessionOrigin,
): Promise<SignedIn> {
  const { store } = platform;
  const { user_id, challenge } = store.transact((tx) => takeTry(tx, factorToken));
  const use = await examineFactor(platform, user_id, answer, challenge);
  return store.transact((tx) => {
    // The request is still there only if nobody else has used it, and the password was not changed meanwhile.
    const { id, issuer, created_at } = getSignIn(tx, factorToken, 'counted');
    use(tx);
    endFactorRequest(tx, id);
    const user = getUser(tx, user_id);
    noteSignIn(platform, tx, user, origin.network);
    const organization = firstOrganization(tx, user.id) ?? null;
    const vouched = vouchedNow(tx, issuer, created_at);
    return { ...openSession(platform, tx, user.id, origin, { factorAt: tx.now, vouched }), user, organization };
  });
}

/** Counts a try and takes the challenge, so that each challenge is answered once. Returns the request as it was. */
function takeTry(tx: Tx, factorToken: string): FactorRequest {
  const request = getSignIn(tx, factorToken);
  countTry(tx, request);
  setChallenge(tx, request, null);
  return request;
}
