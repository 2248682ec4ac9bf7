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
import { KEY_ALGORITHM, fingerprintOf } from '../../../shared/tls.js';
import { Refusal } from '../../domain/refusal.js';

/** From when to when, in ms since 1970 UTC. */
export interface Span {
  from: number;
  to: number;
}

/** Who signs. */
export interface Root {
  pem: string;
  key: webcrypto.CryptoKey;
}

/** What stands in a certificate beside its key and its span. */
interface Leaf {
  serialNumber: string;
  subject: string;
  usage: ExtendedKeyUsage;
  extensions?: Extension[];
}

/** A root of our own; the key also as it is kept, PKCS #8 in base64. */
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

export async function readRoot(pem: string, pkcs8: string): Promise<Root> {
  const key = await webcrypto.subtle.importKey('pkcs8', Buffer.from(pkcs8, 'base64'), KEY_ALGORITHM, false, ['sign']);
  return { pem, key };
}

/**
 * A certificate, in PEM, for the key of a host. Refuses with VALIDATION_FAILED what is not a request for an ECDSA key on P-256,
 * signed with that very key; of the rest of the request nothing is taken over.
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

/** A key and a chain, both PEM, for a server of these DNS names and IP addresses. */
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

/** Of a certificate in PEM, in hexadecimal digits. */
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
