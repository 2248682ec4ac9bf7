import { FORBIDDEN_IPV4 } from '../../shared/forbidden-networks.js';

/** The prefix of the bridges of instances, and of no other interface: the rules recognize renters' packets by it. */
export const BRIDGE_PREFIX = 'gpr';

export interface EgressPolicy {
  /** Name servers that renters may use, even at private addresses. */
  resolvers: readonly string[];
  /** Private networks that renters may reach. */
  allowed: readonly string[];
  /** The pool of the instances' own networks, which can be outside the private ranges. */
  instances: string;
  /** The host owner's limit for what all instances send together; null: a share of the speed of the line. */
  mostMbit: number | null;
}

/** The chain that Docker evaluates before its own rules, and whose rules it keeps when it recreates its own. */
export const DOCKER_CHAIN = 'DOCKER-USER';
export const FORWARD_CHAIN = 'GPURENT-FORWARD';
export const INPUT_CHAIN = 'GPURENT-INPUT';

/** The assumed speed of a line whose speed is unknown. */
const USUAL_MBIT = 1_000;
/** The highest rate that the hashlimit match can count. */
const MOST_MBIT = 180_000;
/** The share of the line for instances. The rest is for the agent, so that renters cannot delay its stops and reports. */
const INSTANCES_SHARE = 0.9;

const REPLY = '-m conntrack --ctstate ESTABLISHED,RELATED -j RETURN';
const SMTP_PORT = 25;

/** Returns the limit for what all instances send together, in megabits per second. `lineMbit`: the speed of the line; null: unknown. */
export function egressMbit({ mostMbit }: Pick<EgressPolicy, 'mostMbit'>, lineMbit: number | null): number {
  const share = Math.max(Math.floor((lineMbit ?? USUAL_MBIT) * INSTANCES_SHARE), 1);
  return Math.min(mostMbit ?? share, MOST_MBIT);
}

/**
 * Returns the rules for renters' packets as input of `iptables-restore --noflush`. They allow replies and public addresses; they refuse
 * the host itself, private networks and mail (to stop spam). Packets above `mbit` megabits per second, of all instances together, are
 * dropped.
 */
export function ipv4Rules({ resolvers, allowed, instances }: EgressPolicy, mbit: number): string {
  const kib = Math.floor((mbit * 1_000_000) / 8 / 1024);
  const named = resolvers.filter((address) => !address.includes(':'));
  return restoreInput([
    // The rate is in the name, because the kernel keeps the limits of an existing bucket with the same name.
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

/** Returns the rules for IPv6: they drop everything, because instances have no IPv6. */
export function ipv6Rules(): string {
  return restoreInput([`-A ${FORWARD_CHAIN} -j DROP`, `-A ${INPUT_CHAIN} -j DROP`]);
}

/** Builds the input of iptables-restore. A line that names a chain also empties it, so that all rules are replaced at once. */
function restoreInput(rules: readonly string[]): string {
  return ['*filter', `:${FORWARD_CHAIN} - [0:0]`, `:${INPUT_CHAIN} - [0:0]`, ...rules, 'COMMIT', ''].join('\n');
}

/** The rules of each chain of the filter table, in order and as iptables prints them. */
export type FilterTable = ReadonlyMap<string, readonly string[]>;

/** Parses the output of iptables-save. */
export function parseFilterTable(saved: string): FilterTable {
  const table = new Map<string, string[]>();
  for (const line of saved.split('\n')) {
    const [, chain = '', rule] = /^:(\S+)/.exec(line) ?? /^-A (\S+) (.*)$/.exec(line) ?? [];
    if (chain !== '' && !table.has(chain)) table.set(chain, []);
    if (rule !== undefined) table.get(chain)?.push(rule.trim());
  }
  return table;
}

/** Returns the rules of both own chains as one text. */
export function ownRules(table: FilterTable): string {
  return [FORWARD_CHAIN, INPUT_CHAIN].flatMap((chain) => [chain, ...(table.get(chain) ?? [])]).join('\n');
}

/** Returns what to match and where to jump to, for renters' packets. */
export function jumpTo(chain: string): string {
  return `-i ${BRIDGE_PREFIX}+ -j ${chain}`;
}

/**
 * Returns the lines of iptables-restore that make exactly one jump to each own chain the first rule where renters' packets pass. They
 * delete rules by their text, not their number: Docker moves its own rules meanwhile, so a number could delete one of them.
 */
export function missingJumps(table: FilterTable): string[] {
  const hasDocker = table.has(DOCKER_CHAIN);
  // Docker moves its own chain to the front when it creates a network, so our rules must be in that chain too.
  const isViaDocker = hasDocker && table.get('FORWARD')?.[0] === `-j ${DOCKER_CHAIN}`;
  return [
    ...missingJump(table, 'INPUT', INPUT_CHAIN),
    ...(hasDocker ? missingJump(table, DOCKER_CHAIN, FORWARD_CHAIN) : []),
    ...(isViaDocker ? [] : missingJump(table, 'FORWARD', FORWARD_CHAIN)),
  ];
}

function missingJump(table: FilterTable, from: string, chain: string): string[] {
  const rules = table.get(from) ?? [];
  const jump = jumpTo(chain);
  const copies = rules.filter((rule) => rule === jump);
  if (rules[0] === jump && copies.length === 1) return [];
  return [...copies.map(() => `-D ${from} ${jump}`), `-I ${from} 1 ${jump}`];
}
