import { expiryOf } from '../shared/network/certificate-term.js';
import type { Clock } from '../shared/clock.js';
import type { IdentitySource, KeyAndCertificate } from '../shared/network/server-identity.js';
import { DAY_MS } from '../shared/time.js';

const RENEW_BEFORE_MS = 30 * DAY_MS;

/** Returns a source of certificates that calls `make` again 30 days before the present certificate expires. */
export function ownMade(make: () => Promise<KeyAndCertificate>, clock: Clock): IdentitySource {
  let made: KeyAndCertificate | undefined;
  return async () => {
    if (!made || expiryOf(made.certificate) - clock.now() < RENEW_BEFORE_MS) made = await make();
    return made;
  };
}
