import { requestCertificate } from '../../agent/link/certificate-request.js';
import { connectionBy } from '../../agent/link/channel.js';
import { fetchAuthority } from '../../agent/link/trust.js';
import { fingerprintIn } from '../../shared/network/tls.js';
import { dialWire, type WireEnrolled, type WireVersion } from './wire.js';
import type { FakeInventory } from './fake-inventory.js';

/** By TLS where the token names an authority: then what dials from now on shows the certificate. */
export async function enroll(
  address: string,
  token: string,
  inventory: Record<string, unknown>,
  { wire, earlier = [] }: Pick<FakeAgentOptions, 'wire' | 'earlier'>,
) {
  const fingerprint = fingerprintIn(token);
  const trust = fingerprint === undefined ? null : { authority: await fetchAuthority(address, fingerprint), own: true };
  const { key, request } = trust ? await requestCertificate() : { key: '', request: Buffer.alloc(0) };
  const client = dialWire(address, connectionBy(address, trust && { trust }), wire);
  try {
    const answer = await new Promise<WireEnrolled>((resolve, reject) => {
      client.enroll({ token, inventory, certificateRequest: request, earlier }, (error, response) =>
        error ? reject(error) : resolve(response),
      );
    });
    const { certificate } = answer;
    return { client: dialWire(address, connectionBy(address, trust && { trust, key, certificate }), wire), answer };
  } finally {
    client.close();
  }
}

export interface FakeAgentOptions extends FakeInventory {
  /** Whether commands are answered by themselves; otherwise each is held until the test says what becomes of it. */
  automatic?: boolean;
  /** Which wire it was built for. */
  wire?: WireVersion;
  /** Whose workloads its Docker holds when it enrolls. */
  earlier?: readonly { hostId: string; workloads: number }[];
  /** The host's clock, in milliseconds. */
  now?: () => number;
}
