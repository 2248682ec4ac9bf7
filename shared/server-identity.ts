import { readFile } from 'node:fs/promises';
import { HOUR_MS } from './time.js';
import { createSecureContext } from 'node:tls';
import type { Clock, Timer } from './clock.js';
import { SetupError, messageOf } from './coded-error.js';
import type { Logger } from './logger.js';

/** A certificate, its chain behind it, and its key; both PEM. */
export interface KeyAndCertificate {
  certificate: string;
  key: string;
}

/** The files of one that somebody else has made. */
export interface CertificateFiles {
  certificate: string;
  key: string;
}

/** Where it comes from; asked again and again, for certificates end. */
export type IdentitySource = () => Promise<KeyAndCertificate>;

const LOOK_MS = HOUR_MS;

/** What a program of ours shows to those who connect by TLS, kept fresh while it runs. */
export class ServerIdentity {
  private shown: KeyAndCertificate | undefined;
  private timer: Timer | undefined;
  private closed = false;
  private readonly listeners: ((shown: KeyAndCertificate) => void)[] = [];

  private constructor(
    private readonly source: IdentitySource,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  /** Rejects with SetupError where there is none to show yet. */
  static async open(source: IdentitySource, clock: Clock, logger: Logger): Promise<ServerIdentity> {
    const identity = new ServerIdentity(source, clock, logger);
    await identity.look().catch((error: unknown) => {
      throw new SetupError(`the certificate for TLS cannot be used: ${messageOf(error)}`, { cause: error });
    });
    identity.wait();
    return identity;
  }

  get current(): KeyAndCertificate {
    if (!this.shown) throw new Error('no certificate was read');
    return this.shown;
  }

  /** Calls `listener` with what is shown, now and whenever it changes. */
  follow(listener: (shown: KeyAndCertificate) => void): void {
    this.listeners.push(listener);
    listener(this.current);
  }

  /** Looks at once; what cannot be used leaves what is shown as it is, and is logged. */
  async refresh(): Promise<void> {
    await this.look().catch((error: unknown) =>
      this.logger.error({ err: error }, `the certificate stays as it was: ${messageOf(error)}`),
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
    if (found.certificate === this.shown?.certificate && found.key === this.shown.key) return;
    createSecureContext({ cert: found.certificate, key: found.key });
    this.shown = found;
    for (const listener of this.listeners) listener(found);
  }
}

/** A certificate with its chain, and its key, as they are in their files now. */
export function fromFiles(files: CertificateFiles): IdentitySource {
  return async () => ({
    certificate: await readFile(files.certificate, 'utf8'),
    key: await readFile(files.key, 'utf8'),
  });
}

/** Judges the settings `<prefix>_CERTIFICATE_FILE` and `<prefix>_KEY_FILE`; null where neither is set. Throws SetupError. */
export function certificateFiles(prefix: string, certificate: string, key: string): CertificateFiles | null {
  if ((certificate === '') !== (key === ''))
    throw new SetupError(`give both ${prefix}_CERTIFICATE_FILE and ${prefix}_KEY_FILE, or neither`);
  return certificate === '' ? null : { certificate, key };
}
