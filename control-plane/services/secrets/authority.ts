import type { Clock } from '../../../shared/clock.js';
import type { Ids } from '../../../shared/ids.js';
import { CONTROL_PLANE_NAME } from '../../../shared/tls.js';
import { DAY_MS, HOUR_MS } from '../../../shared/time.js';
import { readMeta, writeMeta } from '../../store/meta.js';
import type { Store } from '../../store/store.js';
import type { Encryption } from './encryption.js';
import type { Root, Span } from './certificates.js';

const ROOT_DAYS = 30 * 365;
const HOST_DAYS = 365;
const SERVER_DAYS = 90;
/** Clocks of hosts may be behind: for so long before it was issued a certificate is good. */
export const LEEWAY_MS = HOUR_MS;
const SERIAL_BYTES = 16;

/** A certificate in PEM, with the fingerprint that it is known by and its end in ms since 1970 UTC. */
export interface HostCertificate {
  pem: string;
  fingerprint: string;
  expiresAt: number;
}

/** What knows X.509 is loaded where TLS is spoken: a start without it is the shorter. */
const library = () => import('./certificates.js');

/**
 * Certifies hosts, and the control plane itself where its operator has no certificate. Made once for a store and kept in it, the
 * key sealed: so a restored copy is known to the same hosts.
 */
export class Authority {
  private root: Promise<Root> | undefined;

  constructor(
    private readonly store: Store,
    private readonly encryption: Encryption,
    private readonly clock: Clock,
    private readonly ids: Ids,
  ) {}

  /** Its own certificate in PEM; makes it, the first time. */
  async certificate(): Promise<string> {
    return (await this.open()).pem;
  }

  /** Of its own certificate. */
  async fingerprint(): Promise<string> {
    return (await library()).fingerprintOfPem(await this.certificate());
  }

  /** Certifies the key of a host for a year. Refuses with VALIDATION_FAILED a request that cannot be used. */
  async certifyHost(request: Uint8Array, hostId: string): Promise<HostCertificate> {
    const { certifyHostKey, fingerprintOfPem } = await library();
    const span = this.from(HOST_DAYS);
    const pem = await certifyHostKey(await this.open(), request, { serialNumber: this.serialNumber(), hostId, span });
    return { pem, fingerprint: fingerprintOfPem(pem), expiresAt: span.to };
  }

  /** A key and a chain for this control plane, good for ninety days; both PEM. `names` are DNS names and IP addresses. */
  async certifyServer(names: readonly string[]): Promise<{ certificate: string; key: string }> {
    const { certifyServerNames } = await library();
    const leaf = { serialNumber: this.serialNumber(), span: this.from(SERVER_DAYS) };
    return certifyServerNames(await this.open(), [CONTROL_PLANE_NAME, ...names], leaf);
  }

  private open(): Promise<Root> {
    return (this.root ??= this.readOrMake());
  }

  private async readOrMake(): Promise<Root> {
    const { makeRoot, readRoot } = await library();
    const kept = this.store.transact((tx) => ({
      pem: readMeta(tx, 'authority_certificate'),
      key: readMeta(tx, 'authority_key'),
    }));
    if (kept.pem !== undefined && kept.key !== undefined)
      return readRoot(kept.pem, this.encryption.decrypt('authority_key', Buffer.from(kept.key, 'base64')) as string);
    const made = await makeRoot(this.serialNumber(), `gpurent authority ${this.ids.hex(4)}`, this.from(ROOT_DAYS));
    this.store.transact((tx) => {
      writeMeta(tx, 'authority_certificate', made.pem);
      writeMeta(tx, 'authority_key', this.encryption.encrypt('authority_key', made.pkcs8).toString('base64'));
    });
    return made;
  }

  /** Whole seconds, as certificates have them. */
  private from(days: number): Span {
    const now = Math.floor(this.clock.now() / 1_000) * 1_000;
    return { from: now - LEEWAY_MS, to: now + days * DAY_MS };
  }

  /** Positive, as the standard wants it. */
  private serialNumber(): string {
    return `01${this.ids.hex(SERIAL_BYTES - 1)}`;
  }
}
