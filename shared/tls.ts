import { createHash } from 'node:crypto';

/**
 * The name by which a control plane is known in a certificate of its own making: hosts that know its authority by a
 * fingerprint ask for this name, whatever address they dial.
 */
export const CONTROL_PLANE_NAME = 'control-plane.gpurent.internal';

/** The keys of hosts, of the authority and of what it certifies. */
export const KEY_ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** SHA-256 of a certificate in DER, in hexadecimal digits. */
export function fingerprintOf(der: Uint8Array): string {
  return createHash('sha256').update(der).digest('hex');
}

/** An enrolment token that also names the authority of the control plane that takes it. */
export function withFingerprint(token: string, fingerprint: string): string {
  return `${token}.${Buffer.from(fingerprint, 'hex').toString('base64url')}`;
}

/** The fingerprint that a token names; undefined where it names none. */
export function fingerprintIn(token: string): string | undefined {
  const [, encoded] = token.split('.');
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64url').toString('hex');
}
