import { FORBIDDEN_IPV4 } from '../../shared/forbidden-networks.js';

/** Every bridge of an instance is named so, and nothing else on the host: what the rules know renters by. */
export const BRIDGE_PREFIX = 'gpr';

export interface EgressPolicy {
  /** Name servers that renters may ask, wherever they are. */
  resolvers: readonly string[];
  /** Networks that renters may reach though they are private. */
  allowed: readonly string[];
  /** Where instances' own networks are, which may be no private one. */
  instances: string;
  /** What all of them may send together, as the owner has set it; null: a share of what the line takes. */
  mostMbit: number | null;
}

export const FORWARD_CHAIN = 'GPURENT-FORWARD';
export const INPUT_CHAIN = 'GPURENT-INPUT';

/** Of a line whose speed nobody tells. */
const USUAL_MBIT = 1_000;
/** What the packet filter can count. */
const MOST_MBIT = 180_000;
/** Of the line: the rest is the agent's, whose stops and reports no renter is to keep from getting through. */
const INSTANCES_SHARE = 0.9;

const REPLY = '-m conntrack --ctstate ESTABLISHED,RELATED -j RETURN';
const SMTP_PORT = 25;

/** What all instances of a host may send together, in megabits per second. `lineMbit`: what the line takes; null: nobody tells. */
export function egressMbit({ mostMbit }: Pick<EgressPolicy, 'mostMbit'>, lineMbit: number | null): number {
  const share = Math.max(Math.floor((lineMbit ?? USUAL_MBIT) * INSTANCES_SHARE), 1);
  return Math.min(mostMbit ?? share, MOST_MBIT);
}

/**
 * What a renter's packets may reach, as input of `iptables-restore --noflush`: replies anywhere; nothing on the host itself; of
 * the world, what is not private, less mail, which strangers send too much of. What all of them send above `mbit` megabits per
 * second is dropped.
 */
export function ipv4Rules({ resolvers, allowed, instances }: EgressPolicy, mbit: number): string {
  const kib = Math.floor((mbit * 1_000_000) / 8 / 1024);
  const named = resolvers.filter((address) => !address.includes(':'));
  return restoreInput([
    // The kernel keeps the numbers of a bucket as long as one of this name exists.
    `-A ${FORWARD_CHAIN} -m hashlimit --hashlimit-above ${kib}kb/s --hashlimit-burst ${2 * kib}kb --hashlimit-name gpr-${kib} -j DROP`,
    `-A ${FORWARD_CHAIN} ${REPLY}`,
    ...named.flatMap((address) => [
      `-A ${FORWARD_CHAIN} -d ${address} -p udp --dport 53 -j RETURN`,
      `-A ${FORWARD_CHAIN} -d ${address} -p tcp --dport 53 -j RETURN`,
    ]),
    ...allowed.map((network) => `-A ${FORWARD_CHAIN} -d ${network} -j RETURN`),
    ...[instances, ...FORBIDDEN_IPV4].map(
      (network) => `-A ${FORWARD_CHAIN} -d ${network} -j REJECT --reject-with icmp-admin-prohibited`,
    ),
    `-A ${FORWARD_CHAIN} -p tcp --dport ${SMTP_PORT} -j REJECT --reject-with icmp-admin-prohibited`,
    `-A ${INPUT_CHAIN} ${REPLY}`,
    `-A ${INPUT_CHAIN} -j REJECT --reject-with icmp-admin-prohibited`,
  ]);
}

/** Instances have no IPv6. */
export function ipv6Rules(): string {
  return restoreInput([`-A ${FORWARD_CHAIN} -j DROP`, `-A ${INPUT_CHAIN} -j DROP`]);
}

/** Naming a chain empties it, so that all takes effect at once. */
function restoreInput(rules: readonly string[]): string {
  return ['*filter', `:${FORWARD_CHAIN} - [0:0]`, `:${INPUT_CHAIN} - [0:0]`, ...rules, 'COMMIT', ''].join('\n');
}
