import type { AccountCaller } from '../../../domain/caller.js';
import { Refusal } from '../../../domain/refusal.js';
import { REQUEST_TRIES } from '../../../domain/identity/second-factor.js';
import { compileOnce, query, rowById } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import type { Core, Platform } from '../../system/platform.js';
import {
  addFactorRequest,
  countTry,
  endFactorRequest,
  findByChallenge,
  newChallenge,
  type FactorRequest,
} from './factor-requests.js';
import { checkFreshProof } from '../sessions/fresh-proof.js';
import { passkeysOf, wrongFactor } from './give-factor.js';
import { challengeIn, creationOptions, verifyCreation, wrongPasskey, type PasskeyAnswer } from './passkeys.js';
import { addFactor, type AddedFactor } from './second-factors.js';
import { newTotpSecret, stepOf, totpUri } from './totp.js';
import { getUser } from '../users/users.js';

/** An authenticator app that is being added. Only this answer has the secret. */
export interface TotpEnrolment {
  id: string;
  /** In base32, to type it. */
  secret: string;
  /** The same as an `otpauth://` address, to show it as a QR code. */
  uri: string;
  expiresAt: number;
}

/** Begins to add an authenticator app. Refuses with PROOF_REQUIRED. */
export function beginTotp(core: Core, caller: AccountCaller): TotpEnrolment {
  return core.store.transact((tx) => {
    checkFreshProof(tx, caller);
    const secret = newTotpSecret(core.ids);
    const secret_encrypted = core.encryption.encrypt('totp.secret', secret);
    const { userId, sessionId } = caller;
    const begun = { purpose: 'add_totp' as const, user_id: userId, session_id: sessionId, secret_encrypted };
    return enrolmentOf(core, caller, addFactorRequest(tx, begun));
  });
}

/** Returns an authenticator app that the caller is adding in this session, to show it again; undefined: there is none with this id. */
export function findTotp(core: Core, caller: AccountCaller, id: string): TotpEnrolment | undefined {
  const request = core.store.transact((tx) => openTotp(tx, caller, id));
  return request && enrolmentOf(core, caller, request);
}

function enrolmentOf(core: Core, { email }: AccountCaller, request: FactorRequest): TotpEnrolment {
  const secret = secretOf(core, request);
  return { id: request.id, secret, uri: totpUri(secret, email), expiresAt: request.expires_at };
}

function secretOf({ encryption }: Core, { secret_encrypted }: FactorRequest): string {
  if (secret_encrypted === null) throw new Error('this enrolment has no secret');
  return encryption.decrypt('totp.secret', secret_encrypted) as string;
}

/**
 * Adds an authenticator app that shows the right code. Refuses with FACTOR_TOKEN_INVALID, also after five wrong codes, FACTOR_INVALID,
 * LIMIT_REACHED and PROOF_REQUIRED.
 */
export function confirmTotp(
  platform: Platform,
  caller: AccountCaller,
  { id, code, name }: { id: string; code: string; name: string },
): AddedFactor {
  const { store } = platform;
  const request = store.transact((tx) => {
    const open = openTotp(tx, caller, id);
    if (!open) throw enrolmentOver();
    countTry(tx, open);
    return open;
  });
  return store.transact((tx) => {
    checkFreshProof(tx, caller);
    const last_step = stepOf(secretOf(platform, request), code, tx.now);
    if (last_step === undefined) throw wrongFactor();
    endFactorRequest(tx, id);
    const { secret_encrypted } = request;
    return addFactor(platform, tx, caller, { kind: 'totp', name, secret_encrypted, last_step });
  });
}

function openTotp(tx: Tx, { userId, sessionId }: AccountCaller, id: string): FactorRequest | undefined {
  const request = tx.get(rowById('factor_requests', id));
  const isOwn = request?.purpose === 'add_totp' && request.user_id === userId && request.session_id === sessionId;
  return isOwn && request.expires_at > tx.now && request.tries < REQUEST_TRIES ? request : undefined;
}

function enrolmentOver(): Refusal {
  return new Refusal(
    'FACTOR_TOKEN_INVALID',
    'this enrolment is over: it is unknown, was used, has expired, or had five wrong codes; begin again',
  );
}

/** Begins to add a passkey: returns what the browser is asked with. Refuses with PASSKEYS_OFF and PROOF_REQUIRED. */
export function beginPasskey(platform: Platform, caller: AccountCaller) {
  return platform.store.transact((tx) => {
    checkFreshProof(tx, caller);
    const challenge = newChallenge(platform);
    const { userId, sessionId } = caller;
    const options = creationOptions(platform, getUser(tx, userId), challenge, passkeysOf(tx, userId));
    addFactorRequest(tx, { purpose: 'add_passkey', user_id: userId, session_id: sessionId, challenge });
    return options;
  });
}

/** Adds a passkey that the browser has made. Refuses with FACTOR_INVALID, PASSKEYS_OFF, LIMIT_REACHED and PROOF_REQUIRED. */
export async function addPasskey(
  platform: Platform,
  caller: AccountCaller,
  { passkey, name }: { passkey: PasskeyAnswer; name: string },
): Promise<AddedFactor> {
  const { store } = platform;
  const challenge = challengeIn(passkey);
  store.transact((tx) => {
    const request = findByChallenge(tx, caller, 'add_passkey', challenge);
    if (!request) throw wrongPasskey();
    endFactorRequest(tx, request.id);
  });
  const made = await verifyCreation(platform, passkey, challenge);
  return store.transact((tx) => {
    checkFreshProof(tx, caller);
    if (tx.get(withCredential({ credentialId: made.credential_id }))) throw wrongPasskey();
    return addFactor(platform, tx, caller, { kind: 'passkey', name, ...made });
  });
}

const withCredential = compileOnce(({ credentialId }: { credentialId: string }) =>
  query.selectFrom('second_factors').select('id').where('credential_id', '=', credentialId),
);
