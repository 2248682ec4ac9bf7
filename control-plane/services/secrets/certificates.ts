import 'reflect-metadata';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  Pkcs10CertificateRequest,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
  type Extension,
  type PublicKey,
} from '@peculiar/x509';
import { KeyObject, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import { KEY_ALGORITHM, fingerprintOf } from '../../../shared/network/tls.js';
import { Refusal } from '../../domain/refusal.js';

/** The validity of a certificate, in ms since 1970 UTC. */
export interface Span {
  from: number;
  to: number;
}

/** The authority's certificate in PEM, and the key with which it signs. */
export interface Root {
  pem: string;
  key: webcrypto.CryptoKey;
}

/** The fields of a certificate beside its key and its validity. */
interface Leaf {
  serialNumber: string;
  subject: string;
  usage: ExtendedKeyUsage;
  extensions?: Extension[];
}

/** Creates a self-signed root. Returns its key also in PKCS #8 and base64, for storage. */
export async function makeRoot(serialNumber: string, name: string, span: Span): Promise<Root & { pkcs8: string }> {
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber,
    name: `CN=${name}`,
    ...datesOf(span),
    keys,
    signingAlgorithm: KEY_ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
    ],
  });
  return { pem: certificate.toString('pem'), key: keys.privateKey, pkcs8: await pkcs8Of(keys.privateKey) };
}

/** Restores a root from its certificate in PEM and its key in PKCS #8 and base64. */
export async function readRoot(pem: string, pkcs8: string): Promise<Root> {
  const key = await webcrypto.subtle.importKey('pkcs8', Buffer.from(pkcs8, 'base64'), KEY_ALGORITHM, false, ['sign']);
  return { pem, key };
}

/**
 * Issues a certificate, in PEM, for the key of a host. `request` is a PKCS #10 request in DER. Refuses with VALIDATION_FAILED a
 * request whose key is not ECDSA on P-256 or that is not signed with its own key. Ignores every other field of the request.
 */
export async function certifyHostKey(
  root: Root,
  request: Uint8Array,
  { serialNumber, hostId, span }: { serialNumber: string; hostId: string; span: Span },
): Promise<string> {
  const publicKey = await requestedKey(request);
  const leaf = { serialNumber, subject: `CN=${hostId}`, usage: ExtendedKeyUsage.clientAuth };
  return (await sign(root, publicKey, leaf, span)).toString('pem');
}

/** Makes a key and a chain, both PEM, for a server with these DNS names and IP addresses. */
export async function certifyServerNames(
  root: Root,
  names: readonly string[],
  { serialNumber, span }: { serialNumber: string; span: Span },
): Promise<{ certificate: string; key: string }> {
  const keys = await newKeys();
  const all = names.map((value) => ({ type: isIP(value) ? ('ip' as const) : ('dns' as const), value }));
  const leaf = {
    serialNumber,
    subject: 'CN=gpurent control plane',
    usage: ExtendedKeyUsage.serverAuth,
    extensions: [new SubjectAlternativeNameExtension(all)],
  };
  const certificate = await sign(root, keys.publicKey, leaf, span);
  const key = KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' });
  return { certificate: `${certificate.toString('pem')}\n${root.pem}\n`, key: key.toString() };
}

/** Returns the fingerprint of a certificate in PEM, in hexadecimal digits. */
export function fingerprintOfPem(pem: string): string {
  return fingerprintOf(new Uint8Array(new X509Certificate(pem).rawData));
}

function sign(
  root: Root,
  publicKey: PublicKey | webcrypto.CryptoKey,
  { serialNumber, subject, usage, extensions = [] }: Leaf,
  span: Span,
): Promise<X509Certificate> {
  return X509CertificateGenerator.create({
    serialNumber,
    subject,
    issuer: new X509Certificate(root.pem).subject,
    ...datesOf(span),
    publicKey,
    signingKey: root.key,
    signingAlgorithm: KEY_ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([usage]),
      ...extensions,
    ],
  });
}

function datesOf({ from, to }: Span) {
  return { notBefore: new Date(from), notAfter: new Date(to) };
}

function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ['sign', 'verify']);
}

async function pkcs8Of(key: webcrypto.CryptoKey): Promise<string> {
  return Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key)).toString('base64');
}

async function requestedKey(der: Uint8Array): Promise<PublicKey> {
  try {
    const request = new Pkcs10CertificateRequest(new Uint8Array(der));
    const { name, namedCurve } = request.publicKey.algorithm as { name?: string; namedCurve?: string };
    if (name !== 'ECDSA' || namedCurve !== KEY_ALGORITHM.namedCurve) throw new Error('its key is not ECDSA on P-256');
    if (!(await request.verify())) throw new Error('it is not signed with its own key');
    return request.publicKey;
  } catch (error) {
    throw new Refusal('VALIDATION_FAILED', `the certificate request cannot be used: ${String(error)}`);
  }
}
