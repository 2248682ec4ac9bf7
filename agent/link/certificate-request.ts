import 'reflect-metadata';
import { Pkcs10CertificateRequestGenerator } from '@peculiar/x509';
import { KeyObject, webcrypto } from 'node:crypto';
import { KEY_ALGORITHM } from '../../shared/tls.js';

/** A fresh key, in PEM, and a request to certify it, in DER. Who the host is, the control plane says. */
export async function requestCertificate(): Promise<{ key: string; request: Buffer }> {
  const keys = await webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ['sign', 'verify']);
  const subject = { name: 'CN=gpurent host', keys, signingAlgorithm: KEY_ALGORITHM };
  const request = await Pkcs10CertificateRequestGenerator.create(subject);
  const key = KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' });
  return { key: key.toString(), request: Buffer.from(request.rawData) };
}
