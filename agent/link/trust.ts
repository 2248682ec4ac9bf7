import { X509Certificate } from 'node:crypto';
import { connect, type DetailedPeerCertificate } from 'node:tls';
import { parseAddress } from '../../shared/network/addresses.js';
import { SetupError, messageOf } from '../../shared/coded-error.js';
import { CONTROL_PLANE_NAME, fingerprintOf } from '../../shared/network/tls.js';

/** How the agent verifies a control plane that uses TLS. */
export interface Trust {
  /** The certificate of the authority that signs the control plane's certificate, in PEM; absent: the authorities that Node trusts. */
  authority?: string;
  /** Whether that authority is the control plane's own and signs for nobody else: then the address need not match the certificate. */
  own: boolean;
}

const DIAL_MS = 15_000;
const LONGEST_CHAIN = 8;

/**
 * Returns the authority certificate with this SHA-256 fingerprint, in PEM, from the TLS handshake with the control plane at `host:port`.
 * Throws SetupError if the server there shows no such certificate; the agent has then sent nothing to it.
 */
export async function fetchAuthority(address: string, fingerprint: string): Promise<string> {
  const chain = await shownAt(address).catch((error: unknown) => {
    throw new SetupError(`no TLS connection to ${address}: ${messageOf(error)}`, { cause: error });
  });
  const found = chain.find((der) => fingerprintOf(der) === fingerprint);
  if (found) return new X509Certificate(found).toString();
  throw new SetupError(
    `${address} is not the control plane that made this token: its certificate is from another authority; check the address, and whether another server intercepts the connection`,
  );
}

async function shownAt(address: string): Promise<Buffer[]> {
  const at = parseAddress('the control plane', address);
  return new Promise((resolve, reject) => {
    // The fingerprint verifies the server before the agent sends anything.
    const socket = connect(
      { ...at, rejectUnauthorized: false, ALPNProtocols: ['h2'], servername: CONTROL_PLANE_NAME },
      () => {
        const chain = chainOf(socket.getPeerCertificate(true));
        socket.destroy();
        resolve(chain);
      },
    );
    socket.setTimeout(DIAL_MS, () => socket.destroy(new Error('no answer in time')));
    socket.on('error', reject);
  });
}

function chainOf(leaf: DetailedPeerCertificate): Buffer[] {
  const chain: Buffer[] = [];
  // The last certificate names itself as its issuer, or has none.
  for (let next: Partial<DetailedPeerCertificate> = leaf; next.raw && chain.length < LONGEST_CHAIN;) {
    chain.push(next.raw);
    next = next.issuerCertificate ?? {};
  }
  return chain;
}
