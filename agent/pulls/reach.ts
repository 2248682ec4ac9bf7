import { lookup } from 'node:dns/promises';
import { connect, isIP, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { isForbidden, isWithin } from '../../shared/forbidden-networks.js';
import { PullRefused } from '../domain/pull-failure.js';

/** All addresses of a name. Rejects where it has none. */
export type Resolve = (name: string) => Promise<string[]>;

export interface ReachPolicy {
  /** Forbidden networks that may be reached all the same; null: every address may be. */
  allowed: readonly string[] | null;
  /** Networks in which registries may be spoken to without TLS. */
  insecureNetworks: readonly string[];
  /** `https://HOST[:PORT]`, or http: may be at any address. */
  trustedOrigins: readonly string[];
  /** `http://HOST[:PORT]` of which Docker's configuration says so: may be spoken to without TLS at any address. */
  insecureOrigins: readonly string[];
}

/** Of one attempt to connect. */
const CONNECT_MS = 10_000;
const RESOLVE_MS = 20_000;
const MOST_ATTEMPTS = 4;

export const resolveName: Resolve = async (name) => (await lookup(name, { all: true })).map(({ address }) => address);

/** This machine's own addresses, at which it serves more than what it shows to the Internet. */
export function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((found) => (found ?? []).map(({ address }) => address));
}

/** The one way out of the relay: every connection is checked, and goes to exactly the address that was checked. */
export class Reach {
  constructor(
    private readonly policy: ReachPolicy,
    private readonly resolve: Resolve = resolveName,
    private readonly own: readonly string[] = ownAddresses(),
  ) {}

  /** Throws PullRefused. */
  async connect(url: URL): Promise<Socket> {
    const { host, port } = endpointOf(url);
    const found = await this.addressesOf(host);
    const reachable = found.filter((address) => this.isTrusted(url) || this.mayReach(address));
    if (reachable.length === 0) throw new PullRefused('forbidden_address');
    const usable = reachable.filter((address) => url.protocol === 'https:' || this.mayGoWithoutTls(url, address));
    if (usable.length === 0) throw new PullRefused('without_tls');
    return connectToAny(usable, port);
  }

  /** Whether Docker would speak to this host without TLS because of where it is. */
  async isInsecure(url: URL): Promise<boolean> {
    const { insecureNetworks } = this.policy;
    if (insecureNetworks.length === 0) return false;
    return (await this.addressesOf(endpointOf(url).host)).some((address) => isWithin(address, insecureNetworks));
  }

  private mayReach(address: string): boolean {
    const { allowed } = this.policy;
    if (allowed === null) return true;
    // An address with a zone is link-local.
    if (address.includes('%') || isForbidden(address, allowed)) return false;
    return !isWithin(address, withoutZones(this.own)) || isWithin(address, allowed);
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
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => (timer = setTimeout(reject, RESOLVE_MS, new Error('too late'))));
    try {
      return await Promise.race([this.resolve(host), late]);
    } catch (error) {
      throw new PullRefused('unresolved', { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }
}

function endpointOf(url: URL): { host: string; port: number } {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  return { host, port: Number(url.port) || (url.protocol === 'https:' ? 443 : 80) };
}

function withoutZones(addresses: readonly string[]): string[] {
  return addresses.map((address) => address.replace(/%.*$/, ''));
}

async function connectToAny(addresses: readonly string[], port: number): Promise<Socket> {
  let failure: unknown;
  for (const address of addresses.slice(0, MOST_ATTEMPTS)) {
    try {
      return await connectTo(address, port);
    } catch (error) {
      failure = error;
    }
  }
  throw new PullRefused('unreachable', { cause: failure });
}

function connectTo(host: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true });
    socket.setTimeout(CONNECT_MS, () => socket.destroy(new Error('too late')));
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.setTimeout(0);
      socket.off('error', reject);
      resolve(socket);
    });
  });
}
