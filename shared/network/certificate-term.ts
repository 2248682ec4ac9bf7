import { X509Certificate } from 'node:crypto';
import type { Clock } from '../clock.js';
import type { Logger } from '../logger.js';
import { DAY_MS } from '../time.js';

/** How long before its end a certificate is worth a warning. The alerts of packaging/alerts.yml have the same limit. */
export const EXPIRES_SOON_MS = 14 * DAY_MS;

/** When a certificate ends. */
export interface CertificateTerm {
  /** Which one it is, such as `server`. */
  name: string;
  /** In ms since 1970 UTC. */
  expiresAt: number;
}

/** Returns when the first certificate of a PEM ends, in ms since 1970 UTC. Throws if there is none. */
export function expiryOf(pem: string): number {
  return Date.parse(new X509Certificate(pem).validTo);
}

/** Returns when a certificate ends; nothing for one that was not read. */
export function termOf(name: string, expiresAt: number | undefined): CertificateTerm[] {
  return expiresAt === undefined ? [] : [{ name, expiresAt }];
}

/** Says that a certificate ends within two weeks, or has ended; undefined: it is valid for longer. */
export function expiryWords(expiresAt: number, now: number): string | undefined {
  if (expiresAt - now > EXPIRES_SOON_MS) return undefined;
  return `${expiresAt <= now ? 'has expired on' : 'expires on'} ${new Date(expiresAt).toISOString()}`;
}

/** Logs that a certificate ends: when it is first seen, and once a day. */
export class ExpiryWarnings {
  private said: { expiresAt: number; at: number; isOver: boolean } | undefined;

  /** `what` names the certificate and where it is set, `remedy` what to do. */
  constructor(
    private readonly clock: Pick<Clock, 'now'>,
    private readonly logger: Logger,
    private readonly what: string,
    private readonly remedy: string,
  ) {}

  note(expiresAt: number): void {
    const now = this.clock.now();
    const words = expiryWords(expiresAt, now);
    if (words === undefined) return;
    const isOver = expiresAt <= now;
    const { said } = this;
    if (said?.expiresAt === expiresAt && said.isOver === isOver && now - said.at < DAY_MS) return;
    this.said = { expiresAt, at: now, isOver };
    this.logger[isOver ? 'error' : 'warn'](`${this.what} ${words}: ${this.remedy}`);
  }
}
