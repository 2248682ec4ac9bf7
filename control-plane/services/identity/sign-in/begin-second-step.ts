import type { FactorKind } from '../../../domain/identity/second-factor.js';
import type { Tx } from '../../../store/store.js';
import type { Core, Platform } from '../../system/platform.js';
import { addFactorRequest, getSignIn, newChallenge, newFactorToken, setChallenge } from '../factors/factor-requests.js';
import { kindsOf, passkeysOf } from '../factors/give-factor.js';
import { noPasskeys, requestOptions } from '../factors/passkeys.js';

/** A sign-in whose password was right, and whose user has a second factor. */
export interface FactorStep {
  /** `fac_` and 64 hexadecimal digits; with it and the factor the sign-in goes on. */
  factorToken: string;
  expiresAt: number;
  kinds: FactorKind[];
}

/** Begins the second step of a sign-in. `issuer`: the address of the issuer that has said who it is; null: the password did. */
export function beginFactorStep(core: Core, tx: Tx, userId: string, issuer: string | null): FactorStep {
  const { token, token_hash } = newFactorToken(core);
  const { expires_at } = addFactorRequest(tx, { purpose: 'sign_in', user_id: userId, token_hash, issuer });
  return { factorToken: token, expiresAt: expires_at, kinds: kindsOf(tx, userId) };
}

/** Returns the second step of a sign-in that is open. Refuses with FACTOR_TOKEN_INVALID. */
export function findFactorStep(core: Core, factorToken: string): FactorStep {
  return core.store.transact((tx) => {
    const { user_id, expires_at } = getSignIn(tx, factorToken);
    return { factorToken, expiresAt: expires_at, kinds: kindsOf(tx, user_id) };
  });
}

/**
 * Returns what the browser of somebody who signs in is asked with for a passkey. Its challenge replaces the one before. Refuses with
 * FACTOR_TOKEN_INVALID, PASSKEYS_OFF, and with FACTOR_NOT_FOUND if the user has no passkey.
 */
export function passkeyRequestOfStep(platform: Platform, factorToken: string) {
  return platform.store.transact((tx) => {
    const request = getSignIn(tx, factorToken);
    const known = passkeysOf(tx, request.user_id);
    if (known.length === 0) throw noPasskeys();
    const challenge = newChallenge(platform);
    setChallenge(tx, request, challenge);
    return requestOptions(platform, challenge, known);
  });
}
