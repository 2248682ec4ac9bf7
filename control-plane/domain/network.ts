/**
 * Returns the network that an IP address counts as: an IPv4 address itself, for an IPv6 address its /48, because a provider gives a
 * whole /48 to one customer.
 */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (!address.includes(':')) return address;
  const [head = '', tail] = address.toLowerCase().replace(/%.*$/, '').split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(8 - left.length - right.length, 0);
  const groups = [...left, ...Array<string>(zeros).fill('0'), ...right];
  return `${groups
    .slice(0, 3)
    .map((group) => parseInt(group, 16).toString(16))
    .join(':')}::/48`;
}

/**
 * Returns what a network counts as where many networks of one owner must count as one: an IPv4 address its /16, an IPv6 network its /32.
 * `network` is what {@link networkOf} returns.
 */
export function widerNetworkOf(network: string): string {
  const [first = '', second] = network.includes(':') ? network.split(':') : network.split('.');
  if (second === undefined) return network;
  return network.includes(':') ? `${first}:${second}::/32` : `${first}.${second}.0.0/16`;
}

/** Returns how many of the networks are in the same wider network as this one. An unknown network is in none. */
export function countNear(network: string, networks: readonly (string | null)[]): number {
  const wider = widerNetworkOf(network);
  return networks.filter((other) => other !== null && widerNetworkOf(other) === wider).length;
}
