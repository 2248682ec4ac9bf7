import { experimental, type ServerCredentials } from '@grpc/grpc-js';
import type { ServerIdentity } from '../../shared/server-identity.js';

/**
 * TLS for agents: what this control plane shows may change while it listens, and hosts may show a certificate of `authority`
 * (PEM). They need not, for one that enrols has none yet: who may do what without is up to each call.
 */
export function hostTls(identity: ServerIdentity, authority: string): ServerCredentials {
  const following = new Map<experimental.IdentityCertificateUpdateListener, () => void>();
  const provider: experimental.CertificateProvider = {
    // Not at once: the library does not hear what it is told while it subscribes.
    addCaCertificateListener: (listener) => queueMicrotask(() => listener({ caCertificate: Buffer.from(authority) })),
    removeCaCertificateListener: () => {},
    addIdentityCertificateListener: (listener) =>
      void following.set(
        listener,
        identity.follow(({ certificate, key }) =>
          listener({ certificate: Buffer.from(certificate), privateKey: Buffer.from(key) }),
        ),
      ),
    removeIdentityCertificateListener: (listener) => {
      following.get(listener)?.();
      following.delete(listener);
    },
  };
  return experimental.createCertificateProviderServerCredentials(provider, provider, false);
}
