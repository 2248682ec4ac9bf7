import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Clock } from '../../shared/clock.js';
import { SetupError, messageOf } from '../../shared/coded-error.js';
import type { IdentitySource, KeyAndCertificate } from './server-identity.js';

const DAY_MS = 24 * 60 * 60_000;
const RENEW_BEFORE_MS = 30 * DAY_MS;

/** The operator's own certificate with its chain, and its key, as they are in their files now. Rejects with SetupError. */
export function fromFiles(files: { certificate: string; key: string }): IdentitySource {
  const read = (name: string, file: string) =>
    readFile(file, 'utf8').catch((error: unknown) => {
      throw new SetupError(`${name} ${file} cannot be read: ${messageOf(error)}`, { cause: error });
    });
  return async () => {
    const certificate = await read('GPURENT_TLS_CERTIFICATE_FILE', files.certificate);
    const key = await read('GPURENT_TLS_KEY_FILE', files.key);
    return { certificate, key };
  };
}

/** One of our own making, made anew a month before it ends. */
export function ownMade(make: () => Promise<KeyAndCertificate>, clock: Clock): IdentitySource {
  let made: KeyAndCertificate | undefined;
  return async () => {
    if (!made || endOf(made) - clock.now() < RENEW_BEFORE_MS) made = await make();
    return made;
  };
}

function endOf({ certificate }: KeyAndCertificate): number {
  return Date.parse(new X509Certificate(certificate).validTo);
}
