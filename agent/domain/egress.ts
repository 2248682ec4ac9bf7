import { FORBIDDEN_IPV4 } from '../../shared/network/forbidden-networks.js';

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
/** Limits the rate, then jumps to {@link EGRESS_CHAIN}. */
export const FORWARD_CHAIN = 'GPURENT-FORWARD';
/** Says where renters' packets may go. A packet may pass it twice; the rate must count a packet once. */
export const EGRESS_CHAIN = 'GPURENT-EGRESS';
export const INPUT_CHAIN = 'GPURENT-INPUT';
/** In an order in which they can be removed: a chain goes before the chain that it jumps to. */
export const OWN_CHAINS: readonly string[] = [FORWARD_CHAIN, EGRESS_CHAIN, INPUT_CHAIN];

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
    `-A ${FORWARD_CHAIN} -j ${EGRESS_CHAIN}`,
    `-A ${EGRESS_CHAIN} ${REPLY}`,
    ...named.flatMap((address) => [
      `-A ${EGRESS_CHAIN} -d ${address} -p udp --dport 53 -j RETURN`,
      `-A ${EGRESS_CHAIN} -d ${address} -p tcp --dport 53 -j RETURN`,
    ]),
    ...allowed.map((network) => `-A ${EGRESS_CHAIN} -d ${network} -j RETURN`),
    ...[instances, ...FORBIDDEN_IPV4].map(
      (network) => `-A ${EGRESS_CHAIN} -d ${network} -j REJECT --reject-with icmp-admin-prohibited`,
    ),
    `-A ${EGRESS_CHAIN} -p tcp --dport ${SMTP_PORT} -j REJECT --reject-with icmp-admin-prohibited`,
    `-A ${INPUT_CHAIN} ${REPLY}`,
    `-A ${INPUT_CHAIN} -j REJECT --reject-with icmp-admin-prohibited`,
  ]);
}

/** Returns the rules for IPv6: they drop everything, because instances have no IPv6. */
export function ipv6Rules(): string {
  return restoreInput(OWN_CHAINS.map((chain) => `-A ${chain} -j DROP`));
}

/** Builds the input of iptables-restore. A line that names a chain also empties it, so that all rules are replaced at once. */
function restoreInput(rules: readonly string[]): string {
  return ['*filter', ...OWN_CHAINS.map((chain) => `:${chain} - [0:0]`), ...rules, 'COMMIT', ''].join('\n');
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

/** Returns the rules of the own chains as one text. */
export function ownRules(table: FilterTable): string {
  return OWN_CHAINS.flatMap((chain) => [chain, ...(table.get(chain) ?? [])]).join('\n');
}

/** Returns what to match and where to jump to, for renters' packets. */
export function jumpTo(chain: string): string {
  return `-i ${BRIDGE_PREFIX}+ -j ${chain}`;
}

/**
 * Returns the lines of iptables-restore that make a jump to our chains the first rule wherever renters' packets pass, also while Docker
 * moves its own chain. They delete rules by their text, not their number: Docker moves its own rules meanwhile, so a number could delete
 * one of them.
 */
export function missingJumps(table: FilterTable): string[] {
  const hasDocker = table.has(DOCKER_CHAIN);
  // Docker moves its own chain to the front when it creates a network, so our rules must be in that chain too.
  const isViaDocker = hasDocker && table.get('FORWARD')?.[0] === `-j ${DOCKER_CHAIN}`;
  return [
    ...missingJump(table, 'INPUT', INPUT_CHAIN),
    ...(hasDocker ? missingJump(table, DOCKER_CHAIN, FORWARD_CHAIN) : []),
    ...(isViaDocker ? missingSecond(table) : missingJump(table, 'FORWARD', FORWARD_CHAIN)),
  ];
}

/**
 * Tells whether the own chains decide about every packet of renters before any other rule can let it pass. This also holds where the
 * jumps are not where {@link missingJumps} wants them, such as after Docker has moved its own rules at the creation of a network.
 */
export function isRefusing(table: FilterTable): boolean {
  const [first = ''] = table.get('FORWARD') ?? [];
  const [entry = ''] = first === `-j ${DOCKER_CHAIN}` ? (table.get(DOCKER_CHAIN) ?? []) : [first];
  const isForwardGuarded =
    entry === jumpTo(EGRESS_CHAIN) || (entry === jumpTo(FORWARD_CHAIN) && decides(table, FORWARD_CHAIN));
  return (
    table.get('INPUT')?.[0] === jumpTo(INPUT_CHAIN) &&
    decides(table, INPUT_CHAIN) &&
    isForwardGuarded &&
    decides(table, EGRESS_CHAIN)
  );
}

/** A chain of ours that is whole ends by refusing packets, or hands them to the chain that does. */
function decides(table: FilterTable, chain: string): boolean {
  return /^-j (DROP|GPURENT-EGRESS)$|-j REJECT /.test(table.get(chain)?.at(-1) ?? '');
}

function missingJump(table: FilterTable, from: string, chain: string): string[] {
  return isOnlyAt(table, from, chain, 0) ? [] : [...deletions(table, from, chain), `-I ${from} 1 ${jumpTo(chain)}`];
}

/**
 * Docker removes its chain from FORWARD for a moment whenever it moves it to the front. Packets of that moment meet the second rule: a jump
 * that does not count the rate. A jump that counts it there would count each packet twice.
 */
function missingSecond(table: FilterTable): string[] {
  const counted = deletions(table, 'FORWARD', FORWARD_CHAIN);
  if (isOnlyAt(table, 'FORWARD', EGRESS_CHAIN, 1)) return counted;
  return [...counted, ...deletions(table, 'FORWARD', EGRESS_CHAIN), `-I FORWARD 2 ${jumpTo(EGRESS_CHAIN)}`];
}

function isOnlyAt(table: FilterTable, from: string, chain: string, place: number): boolean {
  return table.get(from)?.[place] === jumpTo(chain) && deletions(table, from, chain).length === 1;
}

function deletions(table: FilterTable, from: string, chain: string): string[] {
  const jump = jumpTo(chain);
  return (table.get(from) ?? []).filter((rule) => rule === jump).map(() => `-D ${from} ${jump}`);
}
