import { BlockList, isIP } from 'node:net';
import { isNetwork } from '../../../../shared/network/forbidden-networks.js';

/** Most addresses and blocks of one API key. */
export const MOST_ALLOWED_ADDRESSES = 32;

/** IPv4 addresses in the form that sockets for both families show them in. */
const MAPPED = new BlockList();
MAPPED.addSubnet('::ffff:0:0', 96, 'ipv6');

/** Returns what is wrong with an address or block, such as `192.0.2.1`, `192.0.2.0/24` or `2001:db8::/32`; undefined: nothing. */
export function faultOfBlock(text: string): string | undefined {
  if (!isNetwork(text)) return 'is no IPv4 or IPv6 address, and no block such as 192.0.2.0/24 or 2001:db8::/32';
  const [address = ''] = text.split('/');
  return isMapped(address)
    ? 'is an IPv4 address in the form of IPv6; write it as 192.0.2.1 or 192.0.2.0/24'
    : undefined;
}

/** Returns whether an IP address is in one of these blocks. An IPv4 address in the form of IPv6 is taken for the IPv4 address. */
export function isAllowedAddress(blocks: readonly string[], address: string): boolean {
  // A link-local address can end with its interface.
  const bare = address.replace(/%.*$/, '');
  const version = isIP(bare);
  if (version === 0) return false;
  const { ipv4, ipv6 } = listsOf(blocks);
  if (version === 4) return ipv4.check(bare, 'ipv4');
  return isMapped(bare) ? ipv4.check(bare, 'ipv6') : ipv6.check(bare, 'ipv6');
}

function isMapped(address: string): boolean {
  return isIP(address) === 6 && MAPPED.check(address, 'ipv6');
}

/** Reads the column of the blocks of an API key; null: every address is allowed. */
export function readAllowedAddresses(stored: string | null): readonly string[] | null {
  return stored === null ? null : (JSON.parse(stored) as string[]);
}

interface Lists {
  ipv4: BlockList;
  ipv6: BlockList;
}

/** The lists of keys that are in use, for as long as their credentials are remembered. */
const known = new WeakMap<readonly string[], Lists>();

/** Two lists, because one with `::/0` would have every IPv4 address, too. */
function listsOf(blocks: readonly string[]): Lists {
  const made = known.get(blocks);
  if (made) return made;
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() };
  for (const block of blocks) {
    const [address = '', prefix] = block.split('/');
    const [family, bits] = isIP(address) === 4 ? (['ipv4', 32] as const) : (['ipv6', 128] as const);
    lists[family].addSubnet(address, Number(prefix ?? bits), family);
  }
  known.set(blocks, lists);
  return lists;
}
