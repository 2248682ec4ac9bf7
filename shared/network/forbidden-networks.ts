import { BlockList, isIP } from 'node:net';

/**
 * Addresses outside the Internet: a machine itself, its private networks and the metadata services of clouds. Neither renters'
 * packets nor requests that a stranger causes us to make can go there.
 */
export const FORBIDDEN_IPV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  // Clouds: Azure's host, and IBM's services.
  '168.63.129.16/32',
  '161.26.0.0/16',
  '166.8.0.0/14',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
] as const;

/** Includes the networks that can embed an IPv4 address: the old compatible and translated forms, Teredo, 6to4 and NAT64. */
export const FORBIDDEN_IPV6 = [
  '::/96',
  '::ffff:0:0:0/96',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '100::/64',
  '2001::/32',
  '2002::/16',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
] as const;

const forbidden = blockListOf([...FORBIDDEN_IPV4, ...FORBIDDEN_IPV6]);

/** Returns whether an IP address is in a forbidden network and in no `allowed` one. Text that is not an address is forbidden. */
export function isForbidden(address: string, allowed: readonly string[] = []): boolean {
  const version = isIP(address);
  if (version === 0) return true;
  const family = version === 4 ? 'ipv4' : 'ipv6';
  return forbidden.check(address, family) && !blockListOf(allowed).check(address, family);
}

/** Returns whether a text is a network as `ADDRESS/PREFIX`, or a single address. */
export function isNetwork(text: string): boolean {
  const [, address = '', prefix] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const bits = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
  return bits > 0 && !address.includes('%') && Number(prefix ?? bits) <= bits;
}

/** Returns whether an IP address is in one of these networks, each given as `ADDRESS/PREFIX` or as a single address. */
export function isWithin(address: string, networks: readonly string[]): boolean {
  const version = isIP(address);
  return version !== 0 && blockListOf(networks).check(address, version === 4 ? 'ipv4' : 'ipv6');
}

function blockListOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', prefix] = network.split('/');
    const [family, bits] = address.includes(':') ? (['ipv6', 128] as const) : (['ipv4', 32] as const);
    list.addSubnet(address, Number(prefix ?? bits), family);
  }
  return list;
}
