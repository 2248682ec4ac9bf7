import { X509Certificate } from 'node:crypto';
import { connect, type DetailedPeerCertificate } from 'node:tls';
import { parseAddress } from '../../shared/addresses.js';
import { SetupError, messageOf } from '../../shared/coded-error.js';
import { CONTROL_PLANE_NAME, fingerprintOf } from '../../shared/tls.js';

/** By what a control plane is known that speaks TLS. */
export interface Trust {
  /** The authority that vouches for it, PEM; absent: whichever ones Node trusts. */
  authority?: string;
  /** Whether that authority is the control plane's own, and vouches for nobody else: then it may have any address. */
  own: boolean;
}

const DIAL_MS = 15_000;
const LONGEST_CHAIN = 8;

/**
 * The certificate, in PEM, of the authority with this SHA-256 fingerprint, as the control plane at `host:port` shows it. Throws
 * SetupError where another one stands there: nothing was told to it.
 */
export async function fetchAuthority(address: string, fingerprint: string): Promise<string> {
  const chain = await shownAt(address).catch((error: unknown) => {
    throw new SetupError(`${address} does not answer by TLS: ${messageOf(error)}`, { cause: error });
  });
  const found = chain.find((der) => fingerprintOf(der) === fingerprint);
  if (found) return new X509Certificate(found).toString();
  throw new SetupError(
    `${address} is not the control plane that made this token: its certificate is of another authority; check the address, and whether somebody is in between`,
  );
}

async function shownAt(address: string): Promise<Buffer[]> {
  const at = parseAddress('the control plane', address);
  return new Promise((resolve, reject) => {
    // Whoever answers is judged by the fingerprint, before anything is said.
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
  // Its end is one that names itself, or none.
  for (let next: Partial<DetailedPeerCertificate> = leaf; next.raw && chain.length < LONGEST_CHAIN;) {
    chain.push(next.raw);
    next = next.issuerCertificate ?? {};
  }
  return chain;
}
