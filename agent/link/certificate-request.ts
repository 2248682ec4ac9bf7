import 'reflect-metadata';
import { Pkcs10CertificateRequestGenerator } from '@peculiar/x509';
import { KeyObject, webcrypto } from 'node:crypto';
import { KEY_ALGORITHM } from '../../shared/tls.js';

/** Creates a key, in PEM, and a certificate request for it, in DER. The subject is a placeholder; the control plane sets the host's name. */
export async function requestCertificate(): Promise<{ key: string; request: Buffer }> {
  const keys = await webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ['sign', 'verify']);
  const subject = { name: 'CN=gpurent host', keys, signingAlgorithm: KEY_ALGORITHM };
  const request = await Pkcs10CertificateRequestGenerator.create(subject);
  const key = KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' });
  return { key: key.toString(), request: Buffer.from(request.rawData) };
}
