import type { Clock } from '../../../shared/clock.js';
import type { Ids } from '../../../shared/ids.js';
import { CONTROL_PLANE_NAME } from '../../../shared/network/tls.js';
import { DAY_MS, HOUR_MS } from '../../../shared/time.js';
import { readMeta, writeMeta } from '../../store/meta.js';
import type { Store } from '../../store/store.js';
import type { Encryption } from './encryption.js';
import type { Root, Span } from './certificates.js';

const ROOT_DAYS = 30 * 365;
const HOST_DAYS = 365;
const SERVER_DAYS = 90;
/** A certificate is valid from this long before its issue, because clocks of hosts can be slow. */
export const LEEWAY_MS = HOUR_MS;
const SERIAL_BYTES = 16;

/** A certificate in PEM with its fingerprint and its end in ms since 1970 UTC. */
export interface HostCertificate {
  pem: string;
  fingerprint: string;
  expiresAt: number;
}

/** Loads the X.509 library on first use, because a control plane without TLS starts faster without it. */
const library = () => import('./certificates.js');

/**
 * The certificate authority of a control plane. It issues certificates to hosts, and to the control plane itself if its operator
 * has none. The database keeps it, with the key encrypted, so hosts trust a control plane on a restored copy, too.
 */
export class Authority {
  private root: Promise<Root> | undefined;

  constructor(
    private readonly store: Store,
    private readonly encryption: Encryption,
    private readonly clock: Clock,
    private readonly ids: Ids,
  ) {}

  /** Returns the authority's own certificate in PEM. Creates and stores the authority on first use. */
  async certificate(): Promise<string> {
    return (await this.open()).pem;
  }

  /** Returns the fingerprint of the authority's own certificate. */
  async fingerprint(): Promise<string> {
    return (await library()).fingerprintOfPem(await this.certificate());
  }

  /** Issues a certificate for the key of a host, valid for a year. Refuses an unusable request with VALIDATION_FAILED. */
  async certifyHost(request: Uint8Array, hostId: string): Promise<HostCertificate> {
    const { certifyHostKey, fingerprintOfPem } = await library();
    const span = this.from(HOST_DAYS);
    const pem = await certifyHostKey(await this.open(), request, { serialNumber: this.serialNumber(), hostId, span });
    return { pem, fingerprint: fingerprintOfPem(pem), expiresAt: span.to };
  }

  /** Makes a key and a chain for this control plane, both PEM, valid for 90 days. `names` are DNS names and IP addresses. */
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

  /** Returns a validity in whole seconds, because certificates have no fractions. */
  private from(days: number): Span {
    const now = Math.floor(this.clock.now() / 1_000) * 1_000;
    return { from: now - LEEWAY_MS, to: now + days * DAY_MS };
  }

  /** Returns a random serial number that begins with 01, because RFC 5280 demands a positive one. */
  private serialNumber(): string {
    return `01${this.ids.hex(SERIAL_BYTES - 1)}`;
  }
}
