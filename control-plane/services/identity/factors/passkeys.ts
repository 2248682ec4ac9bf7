import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import { Refusal } from '../../../domain/refusal.js';
import { relyingPartyAt, type RelyingParty } from '../../../domain/identity/relying-party.js';
import type { Row } from '../../../store/schema.js';
import { compileOnce, query, sql, updateRows } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import type { Platform } from '../../system/platform.js';
import { REQUEST_MS } from '../../../domain/identity/second-factor.js';

/** What a browser answers, by WebAuthn, as JSON. Its content comes from strangers: only this file looks into it. */
export type PasskeyAnswer = Readonly<Record<string, unknown>>;

/** Loads the library on first use, because a control plane starts faster without it. */
const library = () => import('@simplewebauthn/server');

/** EdDSA, ECDSA with P-256, RSA with PKCS #1: what all authenticators have. */
const ALGORITHMS = [-8, -7, -257];

/** Returns what passkeys are made for. Refuses with PASSKEYS_OFF. */
export function relyingParty({ publicUrl }: Pick<Platform, 'publicUrl'>): RelyingParty {
  const party = relyingPartyAt(publicUrl);
  if (party) return party;
  throw new Refusal(
    'PASSKEYS_OFF',
    'this control plane takes no passkeys: its operator gives it a public address with https and a name (GPURENT_PUBLIC_URL); use an authenticator app',
  );
}

/** Returns what a browser is asked with for a new passkey: `PublicKeyCredentialCreationOptionsJSON`. Refuses with PASSKEYS_OFF. */
export function creationOptions(
  platform: Pick<Platform, 'publicUrl'>,
  user: Pick<Row<'users'>, 'id' | 'email' | 'name'>,
  challenge: string,
  known: readonly string[],
) {
  return {
    challenge,
    rp: { id: relyingParty(platform).id, name: 'gpurent' },
    user: {
      id: Buffer.from(user.id.replaceAll('-', ''), 'hex').toString('base64url'),
      name: user.email,
      displayName: user.name,
    },
    pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: 'public-key' as const, alg })),
    timeout: REQUEST_MS,
    excludeCredentials: known.map((id) => ({ type: 'public-key' as const, id })),
    authenticatorSelection: { residentKey: 'preferred' as const, userVerification: 'required' as const },
    attestation: 'none' as const,
  };
}

/** Returns what a browser is asked with for the answer of a passkey: `PublicKeyCredentialRequestOptionsJSON`. Refuses with PASSKEYS_OFF. */
export function requestOptions(platform: Pick<Platform, 'publicUrl'>, challenge: string, known: readonly string[]) {
  return {
    challenge,
    rpId: relyingParty(platform).id,
    timeout: REQUEST_MS,
    allowCredentials: known.map((id) => ({
      type: 'public-key' as const,
      id,
    })),
    userVerification: 'required' as const,
  };
}

/** Returns the challenge that an answer says it has signed; empty: none. */
export function challengeIn(answer: PasskeyAnswer): string {
  const { clientDataJSON } = (answer['response'] ?? {}) as { clientDataJSON?: unknown };
  if (typeof clientDataJSON !== 'string') return '';
  try {
    const { challenge } = JSON.parse(Buffer.from(clientDataJSON, 'base64url').toString()) as { challenge?: unknown };
    return typeof challenge === 'string' ? challenge : '';
  } catch {
    return '';
  }
}

/** Returns the columns of a new passkey. Refuses with FACTOR_INVALID an answer to another challenge, from elsewhere, or without a user. */
export async function verifyCreation(
  platform: Pick<Platform, 'publicUrl'>,
  answer: PasskeyAnswer,
  challenge: string,
): Promise<{ credential_id: string; public_key: Buffer; counter: number }> {
  const { id, origin } = relyingParty(platform);
  const { verifyRegistrationResponse } = await library();
  const { registrationInfo } = await orRefuse(() =>
    verifyRegistrationResponse({
      response: answer as unknown as RegistrationResponseJSON,
      expectedChallenge: challenge,
      expectedOrigin: origin,
      expectedRPID: id,
      requireUserVerification: true,
      supportedAlgorithmIDs: ALGORITHMS,
    }),
  );
  if (!registrationInfo) throw wrongPasskey();
  const { credential } = registrationInfo;
  return { credential_id: credential.id, public_key: Buffer.from(credential.publicKey), counter: credential.counter };
}

/**
 * Verifies the answer of a passkey of a user. Returns what records its use, within the transaction of what it allows. Refuses with
 * FACTOR_INVALID, also a passkey that was copied: its count did not grow.
 */
export async function verifyUse(
  platform: Pick<Platform, 'publicUrl' | 'store'>,
  userId: string,
  answer: PasskeyAnswer,
  challenge: string,
): Promise<(tx: Tx) => void> {
  const { id: rpId, origin } = relyingParty(platform);
  const credentialId = typeof answer['id'] === 'string' ? answer['id'] : '';
  const factor = platform.store.transact((tx) => tx.get(byCredential({ credentialId })));
  if (factor?.user_id !== userId || factor.public_key === null || factor.counter === null) throw wrongPasskey();
  const { id, public_key, counter } = factor;
  const { verifyAuthenticationResponse } = await library();
  const { verified, authenticationInfo } = await orRefuse(() =>
    verifyAuthenticationResponse({
      response: answer as unknown as AuthenticationResponseJSON,
      expectedChallenge: challenge,
      expectedOrigin: origin,
      expectedRPID: rpId,
      requireUserVerification: true,
      credential: {
        id: credentialId,
        publicKey: new Uint8Array(public_key),
        counter,
      },
    }),
  );
  if (!verified) throw wrongPasskey();
  return (tx) => {
    const use = { counter: authenticationInfo.newCounter, last_used_at: tx.now };
    if (tx.run(updateRows('second_factors', use, { id, counter })) === 0) throw wrongPasskey();
  };
}

/** The library throws at everything that is not as it should be. */
async function orRefuse<T>(verify: () => Promise<T>): Promise<T> {
  try {
    return await verify();
  } catch {
    throw wrongPasskey();
  }
}

export function wrongPasskey(): Refusal {
  return new Refusal(
    'FACTOR_INVALID',
    'this passkey is none of this account, or it has answered something else; begin again',
  );
}

export function noPasskeys(): Refusal {
  return new Refusal('FACTOR_NOT_FOUND', 'this account has no passkey; use another second factor');
}

const byCredential = compileOnce(({ credentialId }: { credentialId: string }) =>
  query
    .selectFrom('second_factors')
    .select(['id', 'user_id', 'public_key', 'counter'])
    .where('credential_id', '=', credentialId)
    .where('kind', '=', sql.lit('passkey')),
);
