/** An IPv4 network in CIDR notation, such as `10.213.0.0/16`. */
export interface Subnet {
  /** The first address, as a number. */
  first: number;
  prefix: number;
}

/** The network of an instance: addresses for the host and the instance, and those that Docker reserves. */
const INSTANCE_PREFIX = 29;
const INSTANCE_SIZE = 2 ** (32 - INSTANCE_PREFIX);

/** Parses an IPv4 network; undefined if `text` is none, or has bits beyond its prefix. */
export function parseSubnet(text: string): Subnet | undefined {
  const subnet = networkOf(text);
  return subnet && format(subnet.first, subnet.prefix) === text ? subnet : undefined;
}

/** Returns the network of an address such as `10.1.2.3/16`; undefined if `text` is no such address. */
export function networkOf(text: string): Subnet | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(text);
  if (!match) return undefined;
  const [a = 0, b = 0, c = 0, d = 0, prefix = 0] = match.slice(1).map(Number);
  if (Math.max(a, b, c, d) > 255 || prefix > 32) return undefined;
  const address = ((a * 256 + b) * 256 + c) * 256 + d;
  return { first: address - (address % 2 ** (32 - prefix)), prefix };
}

/** Returns the number of instance networks in a pool. */
export function capacityOf({ prefix }: Subnet): number {
  return Math.floor(2 ** (INSTANCE_PREFIX - prefix));
}

/** Yields the networks of a pool that overlap none of `used`, each once, beginning at the network number `offset`. */
export function* freeSubnets(pool: Subnet, used: readonly Subnet[], offset: number): Generator<string> {
  const count = capacityOf(pool);
  for (let i = 0; i < count; i++) {
    const first = pool.first + ((offset + i) % count) * INSTANCE_SIZE;
    if (!used.some((other) => overlap({ first, prefix: INSTANCE_PREFIX }, other))) yield format(first, INSTANCE_PREFIX);
  }
}

/** Tells whether two networks share an address. */
export function overlap(one: Subnet, other: Subnet): boolean {
  const end = ({ first, prefix }: Subnet) => first + 2 ** (32 - prefix);
  return one.first < end(other) && other.first < end(one);
}

function format(first: number, prefix: number): string {
  const bytes = [24, 16, 8, 0].map((shift) => Math.floor(first / 2 ** shift) % 256);
  return `${bytes.join('.')}/${prefix}`;
}
