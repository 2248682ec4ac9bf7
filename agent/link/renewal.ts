import { Metadata } from '@grpc/grpc-js';
import { X509Certificate } from 'node:crypto';
import { ExpiryWarnings, expiryOf, type CertificateTerm } from '../../shared/network/certificate-term.js';
import type { Clock, Timer } from '../../shared/clock.js';
import { messageOf } from '../../shared/coded-error.js';
import type { RenewResponse } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { Logger } from '../../shared/logger.js';
import { HOUR_MS } from '../../shared/time.js';
import { requestCertificate } from './certificate-request.js';
import { clientOf } from './channel.js';
import { saveIdentity, type Identity } from './identity.js';

/** A certificate is valid for a year, so a host can be offline for eleven months. */
const RENEW_AFTER_MS = 30 * 24 * HOUR_MS;
const DEADLINE_MS = 15_000;

/** The host's identity, whose certificate the agent renews once a month. */
export class RenewedIdentity {
  private timer: Timer | undefined;
  private stopped = false;
  private readonly warnings: ExpiryWarnings;

  constructor(
    private identity: Identity,
    private readonly stateDir: string,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {
    this.warnings = new ExpiryWarnings(
      clock,
      logger,
      'the certificate of this host',
      'the control plane refuses the host once it has expired; "gpurent-agent doctor" says why it was not renewed',
    );
  }

  readonly current = (): Identity => this.identity;

  /** Returns when the certificate ends; nothing for a host that has none. */
  terms(): CertificateTerm[] {
    const { proof } = this.identity;
    return proof.kind === 'certificate' ? [{ name: 'host', expiresAt: expiryOf(proof.certificate) }] : [];
  }

  start(): void {
    void this.renewIfDue()
      .catch((error: unknown) =>
        this.logger.warn(
          `the certificate of this host could not be renewed, trying again in an hour: ${messageOf(error)}`,
        ),
      )
      .finally(() => {
        for (const { expiresAt } of this.terms()) this.warnings.note(expiresAt);
        if (!this.stopped) this.timer = this.clock.schedule(HOUR_MS, () => this.start());
      });
  }

  stop(): void {
    this.stopped = true;
    this.timer?.cancel();
  }

  /**
   * Renews a certificate that is older than 30 days. Saves the new one before its first use, at which the control plane revokes the old
   * one. Rejects if the control plane does not answer or refuses.
   */
  async renewIfDue(): Promise<void> {
    const { proof, controlPlane } = this.identity;
    if (proof.kind !== 'certificate') return;
    if (this.clock.now() - Date.parse(new X509Certificate(proof.certificate).validFrom) < RENEW_AFTER_MS) return;
    const { key, request } = await requestCertificate();
    const client = clientOf(controlPlane, proof);
    try {
      const { certificate } = await new Promise<RenewResponse>((resolve, reject) => {
        client.renew(
          { certificateRequest: request },
          new Metadata(),
          { deadline: Date.now() + DEADLINE_MS },
          (error, answer) => (error ? reject(new Error(error.details)) : resolve(answer)),
        );
      });
      const renewed = { ...this.identity, proof: { ...proof, key, certificate } };
      saveIdentity(this.stateDir, renewed);
      this.identity = renewed;
      this.logger.info('the certificate of this host was renewed');
    } finally {
      client.close();
    }
  }
}
