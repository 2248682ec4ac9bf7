import { KeyObject, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import 'reflect-metadata';
import { SubjectAlternativeNameExtension, X509CertificateGenerator } from '@peculiar/x509';
import { DAY_MS } from '../../shared/time.js';
import { KEY_ALGORITHM } from '../../shared/network/tls.js';
import type { KeyAndCertificate } from '../../shared/network/server-identity.js';

/** As somebody else's authority would make it, for a DNS name or an IP address; `notAfter`: when it ends. */
export async function certificateFor(name: string, notAfter?: Date): Promise<KeyAndCertificate> {
  const keys = await webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    keys,
    ...(notAfter ? { notBefore: new Date(notAfter.getTime() - 90 * DAY_MS), notAfter } : {}),
    signingAlgorithm: KEY_ALGORITHM,
    extensions: [new SubjectAlternativeNameExtension([{ type: isIP(name) ? 'ip' : 'dns', value: name }])],
  });
  const key = KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' });
  return { certificate: certificate.toString('pem'), key: String(key) };
}
