import { createHash } from 'node:crypto';

/**
 * The name of the control plane in a certificate of its own authority. Hosts that know the authority by its fingerprint ask for this
 * name, whatever address they dial.
 */
export const CONTROL_PLANE_NAME = 'control-plane.gpurent.internal';

/** The algorithm of the keys of hosts, of the authority and of the certificates that it issues. */
export const KEY_ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** Returns the SHA-256 of a certificate in DER, as hexadecimal digits. */
export function fingerprintOf(der: Uint8Array): string {
  return createHash('sha256').update(der).digest('hex');
}

/** Returns an enrollment token that also contains the fingerprint of the control plane's authority. */
export function withFingerprint(token: string, fingerprint: string): string {
  return `${token}.${Buffer.from(fingerprint, 'hex').toString('base64url')}`;
}

/** Returns the fingerprint in a token; undefined if there is none. */
export function fingerprintIn(token: string): string | undefined {
  const [, encoded] = token.split('.');
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64url').toString('hex');
}
