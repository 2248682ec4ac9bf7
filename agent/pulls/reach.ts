import { lookup } from 'node:dns/promises';
import { connect, isIP, type Socket } from 'node:net';
import { isWithin } from '../../shared/network/forbidden-networks.js';
import { mayReach, ownAddresses } from '../../shared/network/reachable.js';
import { MINUTE_MS } from '../../shared/time.js';
import { PullRefused } from '../domain/pull-failure.js';

/** Returns all addresses of a name. Rejects if it has none. */
export type Resolve = (name: string) => Promise<string[]>;

export interface ReachPolicy {
  /** Forbidden networks that the relay can reach all the same; null: it can reach every address. */
  allowed: readonly string[] | null;
  /** Networks in which registries can be used without TLS. */
  insecureNetworks: readonly string[];
  /** `https://HOST[:PORT]`, or http: origins that can be at any address. */
  trustedOrigins: readonly string[];
  /** `http://HOST[:PORT]`: origins that Docker's configuration allows without TLS, at any address. */
  insecureOrigins: readonly string[];
}

/** How long to wait for a peer, in milliseconds. */
export interface Patience {
  resolveMs: number;
  /** For one attempt to connect. */
  connectMs: number;
  handshakeMs: number;
  /** For data, or for complete headers. */
  silenceMs: number;
}

export const PATIENCE: Patience = { resolveMs: 20_000, connectMs: 10_000, handshakeMs: 15_000, silenceMs: MINUTE_MS };
/** Most addresses of a name that are tried: a name can have any number. */
const MOST_ATTEMPTS = 4;

export const resolveName: Resolve = async (name) => (await lookup(name, { all: true })).map(({ address }) => address);

/**
 * Opens all outgoing connections of the relay. It checks each address, and connects to exactly the address that it
 * checked.
 */
export class Reach {
  constructor(
    private readonly policy: ReachPolicy,
    private readonly resolve: Resolve = resolveName,
    private readonly own: readonly string[] = ownAddresses(),
    private readonly patience: Patience = PATIENCE,
  ) {}

  /** Connects to the host of `url`. Throws PullRefused. */
  async connect(url: URL): Promise<Socket> {
    const { host, port } = endpointOf(url);
    const found = await this.addressesOf(host);
    const reachable = found.filter((address) => this.isTrusted(url) || this.mayReach(address));
    if (reachable.length === 0) throw new PullRefused('forbidden_address');
    const usable = reachable.filter((address) => url.protocol === 'https:' || this.mayGoWithoutTls(url, address));
    if (usable.length === 0) throw new PullRefused('without_tls');
    return this.connectToAny(usable, port);
  }

  /** Returns whether Docker would use this host without TLS because of its address. */
  async isInsecure(url: URL): Promise<boolean> {
    const { insecureNetworks } = this.policy;
    if (insecureNetworks.length === 0) return false;
    return (await this.addressesOf(endpointOf(url).host)).some((address) => isWithin(address, insecureNetworks));
  }

  private mayReach(address: string): boolean {
    const { allowed } = this.policy;
    return allowed === null || mayReach(address, allowed, this.own);
  }

  private mayGoWithoutTls(url: URL, address: string): boolean {
    const { insecureNetworks, insecureOrigins } = this.policy;
    return insecureOrigins.includes(url.origin) || isWithin(address, insecureNetworks);
  }

  private isTrusted(url: URL): boolean {
    return this.policy.trustedOrigins.includes(url.origin);
  }

  private async addressesOf(host: string): Promise<string[]> {
    if (isIP(host) !== 0) return [host];
    const { resolveMs } = this.patience;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => (timer = setTimeout(reject, resolveMs, new Error('too late'))));
    try {
      return await Promise.race([this.resolve(host), late]);
    } catch (error) {
      throw new PullRefused('unresolved', { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }

  private async connectToAny(addresses: readonly string[], port: number): Promise<Socket> {
    let failure: unknown;
    for (const host of addresses.slice(0, MOST_ATTEMPTS)) {
      try {
        return await opened(connect({ host, port, noDelay: true }), 'connect', this.patience.connectMs);
      } catch (error) {
        failure = error;
      }
    }
    throw new PullRefused('unreachable', { cause: failure });
  }
}

/** Returns the host and port of an http or https URL. */
export function endpointOf({ hostname, port, protocol }: URL): { host: string; port: number } {
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port) || (protocol === 'https:' ? 443 : 80) };
}

/**
 * Resolves once a socket is open, which is when it emits `event`. Destroys the socket and rejects if that takes longer
 * than `ms`.
 */
export function opened<S extends Socket>(socket: S, event: 'connect' | 'secureConnect', ms: number): Promise<S> {
  return new Promise((resolve, reject) => {
    const onLate = () => socket.destroy(new PullRefused('unreachable'));
    socket.setTimeout(ms, onLate);
    socket.once('error', reject);
    socket.once(event, () => {
      socket.setTimeout(0, onLate);
      socket.off('error', reject);
      resolve(socket);
    });
  });
}
