import { ServerCredentials } from '@grpc/grpc-js';
import { constants } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import type { KeyAndCertificate, ServerIdentity } from '../../shared/network/server-identity.js';
import { CONTROL_PLANE_NAME } from '../../shared/network/tls.js';

/** The certificates that this control plane presents to hosts. Both can change while it listens. */
export interface Identities {
  /** For hosts that ask for any other name. */
  identity: ServerIdentity;
  /** For hosts that trust its own authority: they ask for CONTROL_PLANE_NAME. */
  own: ServerIdentity;
}

/**
 * TLS credentials for agents. A host can present a certificate of `authority` (PEM). It is optional, because a host that enrolls has
 * none yet: each call decides what it allows without one. No session tickets are issued: agents do not resume sessions, and a ticket
 * takes a fifth of a handshake.
 */
export class HostTls extends ServerCredentials {
  constructor({ identity, own }: Identities, authority: string) {
    const contextOf = ({ certificate, key }: KeyAndCertificate) => ({
      ca: authority,
      cert: certificate,
      key,
      secureOptions: constants.SSL_OP_NO_TICKET,
    });
    let ownContext: SecureContext;
    const SNICallback = (name: string, answer: (error: Error | null, context?: SecureContext) => void) => {
      if (name === CONTROL_PLANE_NAME) answer(null, ownContext);
      else answer(null);
    };
    // Without a certificate of the operator there is nothing to choose, and handshakes are cheaper without the callback.
    const choice = own === identity ? {} : { SNICallback };
    super({ requestCert: true, rejectUnauthorized: false, ...choice }, contextOf(identity.current));
    own.follow((shown) => (ownContext = createSecureContext(contextOf(shown))));
    identity.follow((shown) => this.updateSecureContextOptions(contextOf(shown)));
  }

  _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}
