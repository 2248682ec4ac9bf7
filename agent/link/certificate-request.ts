import { KeyObject, webcrypto } from 'node:crypto';
import { KEY_ALGORITHM } from '../../shared/network/tls.js';

/** Creates a key, in PEM, and a certificate request for it, in DER. The subject is a placeholder; the control plane sets the host's name. */
export async function requestCertificate(): Promise<{ key: string; request: Buffer }> {
  // Loaded when a certificate is due, for it takes 4 MB.
  await import('reflect-metadata');
  const { Pkcs10CertificateRequestGenerator } = await import('@peculiar/x509');
  const keys = await webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ['sign', 'verify']);
  const subject = { name: 'CN=gpurent host', keys, signingAlgorithm: KEY_ALGORITHM };
  const request = await Pkcs10CertificateRequestGenerator.create(subject);
  const key = KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' });
  return { key: key.toString(), request: Buffer.from(request.rawData) };
}
