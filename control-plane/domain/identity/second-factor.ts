import { HOUR_MS, MINUTE_MS } from '../../../shared/time.js';

/** `totp`: an authenticator app with a shared secret (RFC 6238); `passkey`: a key that a device or a password manager keeps (WebAuthn). */
export const FACTOR_KINDS = ['totp', 'passkey'] as const;
export type FactorKind = (typeof FACTOR_KINDS)[number];

/** What a user has begun that a second factor completes. */
export type FactorPurpose = 'sign_in' | 'proof' | 'add_totp' | 'add_passkey';

/** How long a proof of who uses a session is fresh. */
export const PROOF_MS = 15 * MINUTE_MS;
/** How long a sign-in waits for its second factor, and a challenge for its answer. */
export const REQUEST_MS = 10 * MINUTE_MS;
/** Requests of one purpose that a user has open at once. One more ends the oldest. */
export const MOST_REQUESTS = 10;
/** Wrong answers after which a request is of no use. */
export const REQUEST_TRIES = 5;
/** Wrong codes of a user in {@link GUESSES_MS}, from all networks together: of a million codes, three fit at a time. */
export const MOST_GUESSES = 20;
export const GUESSES_MS = HOUR_MS;
/** How long an operator's removal of a user's factors waits for the objection of the user. */
export const REMOVAL_MS = 24 * HOUR_MS;
export const RECOVERY_CODES = 10;
