import { expiryOf, termOf, type CertificateTerm } from '../shared/network/certificate-term.js';
import type { Clock } from '../shared/clock.js';
import { SetupError, messageOf } from '../shared/coded-error.js';
import type { Logger } from '../shared/logger.js';
import { ServerIdentity, fromFiles, requirePair, type IdentitySource } from '../shared/network/server-identity.js';
import type { TlsSettings } from './config.js';
import type { Identities } from './grpc/host-tls.js';
import { ownMade } from './own-certificate.js';
import type { Authority } from './services/secrets/authority.js';

/** The certificates of a control plane that uses TLS. */
export interface Certificates extends Identities {
  /** The certificate of its authority in PEM. */
  authority: string;
  /** Returns when each one ends. */
  terms(): CertificateTerm[];
  close(): void;
}

/**
 * Opens the certificates of the control plane: the operator's, if one is set, and the one of its own authority, which hosts
 * trust.
 */
export async function openCertificates(
  authority: Authority,
  tls: TlsSettings,
  clock: Clock,
  logger: Logger,
): Promise<Certificates> {
  const open = (source: IdentitySource) => ServerIdentity.open(source, clock, logger);
  const operators = tls.files && (await open(fromFiles(tls.files)));
  try {
    const own = await open(ownMade(() => authority.certifyServer(tls.names), clock));
    const pem = await authority.certificate();
    return {
      own,
      identity: operators ?? own,
      authority: pem,
      terms: () => [
        ...termOf('server', operators?.expiresAt),
        ...termOf('own', own.expiresAt),
        { name: 'authority', expiresAt: expiryOf(pem) },
      ],
      close() {
        operators?.close();
        own.close();
      },
    };
  } catch (error) {
    operators?.close();
    throw error;
  }
}

/**
 * Makes the daemon `pid` read its certificate again, after a check that it will take it. Returns what to print. Throws SetupError with
 * the reason if the certificate cannot be used or has expired; the daemon keeps the present one then.
 */
export async function reloadCertificate({ files }: TlsSettings, pid: number, now: number): Promise<string> {
  if (!files) return 'nothing to read again: the control plane makes its own certificate';
  const expiresAt = await fromFiles(files)()
    .then(requirePair)
    .catch((error: unknown) => {
      throw refusal(messageOf(error), error);
    });
  const until = new Date(expiresAt).toISOString();
  if (expiresAt <= now) throw refusal(`it has expired on ${until}`);
  process.kill(pid, 'SIGHUP');
  return `${files.certificate} is read again; it expires on ${until}`;
}

function refusal(reason: string, cause?: unknown): SetupError {
  return new SetupError(`the new certificate cannot be used, the present one stays: ${reason}`, { cause });
}
