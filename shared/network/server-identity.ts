import { readFile } from 'node:fs/promises';
import { ExpiryWarnings, expiryOf } from './certificate-term.js';
import { HOUR_MS } from '../time.js';
import { createSecureContext } from 'node:tls';
import type { Clock, Timer } from '../clock.js';
import { SetupError, messageOf } from '../coded-error.js';
import { requireReadable } from '../file-access.js';
import type { Logger } from '../logger.js';

/** A certificate followed by its chain, and its key; both in PEM. */
export interface KeyAndCertificate {
  certificate: string;
  key: string;
}

/** The files of a certificate that another authority has issued, and of its key. */
export interface CertificateFiles {
  certificate: string;
  key: string;
}

/** Returns the present certificate. It is called every hour, because certificates expire. */
export type IdentitySource = () => Promise<KeyAndCertificate>;

const LOOK_MS = HOUR_MS;

/** The certificate that a program presents to TLS clients, renewed while the program runs. */
export class ServerIdentity {
  private shown: KeyAndCertificate | undefined;
  private timer: Timer | undefined;
  private closed = false;
  private readonly warnings: ExpiryWarnings;
  private readonly listeners: ((shown: KeyAndCertificate) => void)[] = [];

  private constructor(
    private readonly source: IdentitySource,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {
    this.warnings = new ExpiryWarnings(
      clock,
      logger,
      'the certificate for TLS',
      'clients refuse a certificate that has expired; renew it',
    );
  }

  /** Reads the first certificate. Rejects with SetupError if it cannot be used. */
  static async open(source: IdentitySource, clock: Clock, logger: Logger): Promise<ServerIdentity> {
    const identity = new ServerIdentity(source, clock, logger);
    await identity.require();
    identity.wait();
    return identity;
  }

  /** Returns an identity that has read no certificate yet: it shows none until {@link require} has read one. */
  static unread(source: IdentitySource, clock: Clock, logger: Logger): ServerIdentity {
    const identity = new ServerIdentity(source, clock, logger);
    identity.wait();
    return identity;
  }

  /** Reads the first certificate unless one was read. Rejects with SetupError if it cannot be used. */
  async require(): Promise<void> {
    if (this.shown) return;
    await this.look().catch((error: unknown) => {
      throw new SetupError(`the certificate for TLS cannot be used: ${messageOf(error)}`, { cause: error });
    });
  }

  get current(): KeyAndCertificate {
    if (!this.shown) throw new Error('no certificate was read');
    return this.shown;
  }

  /** In ms since 1970 UTC; undefined: no certificate was read. */
  get expiresAt(): number | undefined {
    return this.shown && expiryOf(this.shown.certificate);
  }

  /** Calls `listener` with the certificate now, if one was read, and after each change. */
  follow(listener: (shown: KeyAndCertificate) => void): void {
    this.listeners.push(listener);
    if (this.shown) listener(this.shown);
  }

  /** Reads the certificate now, and logs it if it ends soon. Keeps the present one, and logs why, if the new one cannot be used. */
  async refresh(): Promise<void> {
    await this.look().catch((error: unknown) =>
      this.logger.error(
        { err: error },
        `the new certificate cannot be used, ${this.shown ? 'the present one stays' : 'and there is none'}: ${messageOf(error)}`,
      ),
    );
  }

  close(): void {
    this.closed = true;
    this.timer?.cancel();
  }

  private wait(): void {
    if (this.closed) return;
    this.timer = this.clock.schedule(LOOK_MS, () => void this.refresh().finally(() => this.wait()));
  }

  private async look(): Promise<void> {
    const found = await this.source();
    if (found.certificate !== this.shown?.certificate || found.key !== this.shown.key) this.show(found);
    this.warnings.note(expiryOf(found.certificate));
  }

  private show(found: KeyAndCertificate): void {
    const now = this.clock.now();
    const expiresAt = requirePair(found);
    if (expiresAt <= now && (this.expiresAt ?? now) > now)
      throw new Error(`it has expired on ${new Date(expiresAt).toISOString()}`);
    this.shown = found;
    for (const listener of this.listeners) listener(found);
  }
}

/** Returns when the certificate ends, in ms since 1970 UTC. Throws if it is none, or if the key is not its key. */
export function requirePair({ certificate, key }: KeyAndCertificate): number {
  createSecureContext({ cert: certificate, key });
  return expiryOf(certificate);
}

/** Returns a source that reads a certificate with its chain, and its key, from their files. */
export function fromFiles(files: CertificateFiles): IdentitySource {
  return async () => {
    requireReadable(files.certificate);
    requireReadable(files.key);
    return { certificate: await readFile(files.certificate, 'utf8'), key: await readFile(files.key, 'utf8') };
  };
}

/**
 * Reads the settings `<prefix>_CERTIFICATE_FILE` and `<prefix>_KEY_FILE`; null if neither is set. Throws SetupError if one is
 * missing.
 */
export function certificateFiles(prefix: string, certificate: string, key: string): CertificateFiles | null {
  if ((certificate === '') !== (key === ''))
    throw new SetupError(`give both ${prefix}_CERTIFICATE_FILE and ${prefix}_KEY_FILE, or neither`);
  return certificate === '' ? null : { certificate, key };
}
