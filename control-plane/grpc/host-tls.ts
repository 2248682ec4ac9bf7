import { ServerCredentials } from '@grpc/grpc-js';
import { createSecureContext, type SecureContext } from 'node:tls';
import type { KeyAndCertificate, ServerIdentity } from '../../shared/server-identity.js';
import { CONTROL_PLANE_NAME } from '../../shared/tls.js';

/** What this control plane shows to hosts; both may change while it listens. */
export interface Identities {
  /** To those that ask for any name. */
  identity: ServerIdentity;
  /** To those that know its own authority, and ask for the name that it gives itself. */
  own: ServerIdentity;
}

/**
 * TLS for agents. Hosts may show a certificate of `authority` (PEM). They need not, for one that enrols has none yet: who may do
 * what without is up to each call.
 */
export class HostTls extends ServerCredentials {
  constructor({ identity, own }: Identities, authority: string) {
    const contextOf = ({ certificate, key }: KeyAndCertificate) => ({ ca: authority, cert: certificate, key });
    let ownContext: SecureContext;
    const SNICallback = (name: string, answer: (error: Error | null, context?: SecureContext) => void) => {
      if (name === CONTROL_PLANE_NAME) answer(null, ownContext);
      else answer(null);
    };
    super({ requestCert: true, rejectUnauthorized: false, SNICallback }, contextOf(identity.current));
    own.follow((shown) => (ownContext = createSecureContext(contextOf(shown))));
    identity.follow((shown) => this.updateSecureContextOptions(contextOf(shown)));
  }

  _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}
