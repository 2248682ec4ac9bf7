import { Secret, TOTP } from 'otpauth';

const STEP_S = 30;
/** Steps before and after the present one whose codes are taken, too: clocks of telephones differ. */
const SKEW_STEPS = 1;
const SECRET_BYTES = 20;
/** What authenticator apps show beside the address of the account. */
const ISSUER = 'gpurent';

/** Returns a new shared secret in base32, of 160 bits, as RFC 4226 recommends. */
export function newTotpSecret(ids: { hex(bytes: number): string }): string {
  return Secret.fromHex(ids.hex(SECRET_BYTES)).base32;
}

/** Returns the address that an authenticator app reads, mostly as a QR code. */
export function totpUri(secret: string, email: string): string {
  return new TOTP({ issuer: ISSUER, label: email, secret, algorithm: 'SHA1', digits: 6, period: STEP_S }).toString();
}

/** Returns the time step of a code, in steps of 30 seconds since 1970; undefined: it is not the code of this time. `now` is in milliseconds. */
export function stepOf(secret: string, code: string, now: number): number | undefined {
  const found = TOTP.validate({
    token: code,
    secret: Secret.fromBase32(secret),
    timestamp: now,
    window: SKEW_STEPS,
    algorithm: 'SHA1',
    digits: 6,
    period: STEP_S,
  });
  return found === null ? undefined : Math.floor(now / 1_000 / STEP_S) + found;
}
