import { describe, expect, it } from 'vitest';
import { BRIDGE_PREFIX, ipv4Rules, ipv6Rules, type EgressPolicy } from '../../agent/domain/egress.js';
import { FORBIDDEN_IPV4, isWithin } from '../../shared/forbidden-networks.js';

const POLICY: EgressPolicy = {
  resolvers: ['192.168.1.53', 'fd00::53'],
  allowed: ['192.168.7.0/24', '10.1.0.0/16'],
  instances: '203.0.113.0/24',
  mostMbit: null,
};

const CHAIN = 'GPURENT-FORWARD';

/** What becomes of the first packet of a connection: the target of the first rule that it meets. */
function verdict(rules: string, address: string, protocol: 'tcp' | 'udp', port: number): string | undefined {
  const option = (rule: string, name: string) => new RegExp(` ${name} (\\S+)`).exec(rule)?.[1];
  const meets = (rule: string) =>
    // Neither a reply nor too much.
    !/ --ctstate | --hashlimit-above /.test(rule) &&
    [address].every((to) => isWithin(to, [option(rule, '-d') ?? '0.0.0.0/0'])) &&
    (option(rule, '-p') ?? protocol) === protocol &&
    Number(option(rule, '--dport') ?? port) === port;
  const rule = rules.split('\n').find((line) => line.startsWith(`-A ${CHAIN} `) && meets(line));
  return rule && option(rule, '-j');
}

const rules = ipv4Rules(POLICY, 900);

describe('A renter', () => {
  it.each(['tcp', 'udp'] as const)('reaches the Internet by %s', (protocol) => {
    for (const port of [1, 22, 53, 80, 443, 587, 65_535])
      expect(verdict(rules, '8.8.4.4', protocol, port)).toBeUndefined();
  });

  it('reaches networks that the owner allows, and nothing beside them', () => {
    expect(verdict(rules, '192.168.7.1', 'tcp', 443)).toBe('RETURN');
    expect(verdict(rules, '10.1.255.255', 'udp', 4_000)).toBe('RETURN');
    expect(verdict(rules, '192.168.8.1', 'tcp', 443)).toBe('REJECT');
    expect(verdict(rules, '10.2.0.0', 'udp', 4_000)).toBe('REJECT');
  });

  it.each([...FORBIDDEN_IPV4, '203.0.113.0/24'])('reaches nothing in %s, by no protocol', (network) => {
    const [address = ''] = network.split('/');
    for (const protocol of ['tcp', 'udp'] as const) expect(verdict(rules, address, protocol, 80)).toBe('REJECT');
  });

  it('sends no mail to the Internet, and mail alone is held back', () => {
    expect(verdict(rules, '8.8.4.4', 'tcp', 25)).toBe('REJECT');
    expect(verdict(rules, '8.8.4.4', 'tcp', 26)).toBeUndefined();
    expect(verdict(rules, '8.8.4.4', 'udp', 25)).toBeUndefined();
    expect(verdict(rules, '192.168.7.1', 'tcp', 25)).toBe('RETURN');
  });

  it('asks a private resolver for names, and for nothing else', () => {
    expect([verdict(rules, '192.168.1.53', 'udp', 53), verdict(rules, '192.168.1.53', 'tcp', 53)]).toEqual([
      'RETURN',
      'RETURN',
    ]);
    expect([verdict(rules, '192.168.1.53', 'tcp', 80), verdict(rules, '192.168.1.54', 'udp', 53)]).toEqual([
      'REJECT',
      'REJECT',
    ]);
  });
});

it('the rules are what iptables-restore takes: chains emptied, everything at once', () => {
  const lines = rules.split('\n');
  expect(lines.slice(0, 3)).toEqual(['*filter', ':GPURENT-FORWARD - [0:0]', ':GPURENT-INPUT - [0:0]']);
  expect(lines.slice(-2)).toEqual(['COMMIT', '']);
  expect(lines.filter((line) => line.includes('fd00::'))).toEqual([]);
});

it('renters are known by how their bridges are named', () => {
  expect(BRIDGE_PREFIX).toBe('gpr');
});

it('replies come through, and nothing on the host itself is reached', () => {
  const of = (chain: string) => rules.split('\n').filter((line) => line.startsWith(`-A ${chain} `));
  const reply = '-m conntrack --ctstate ESTABLISHED,RELATED -j RETURN';
  expect(of(CHAIN)[1]).toBe(`-A ${CHAIN} ${reply}`);
  expect(of('GPURENT-INPUT')).toEqual([
    `-A GPURENT-INPUT ${reply}`,
    '-A GPURENT-INPUT -j REJECT --reject-with icmp-admin-prohibited',
  ]);
});

it('the line is measured in kibibytes, with a burst of two seconds, under a name that changes with it', () => {
  expect(rules).toContain(
    `-A ${CHAIN} -m hashlimit --hashlimit-above 109863kb/s --hashlimit-burst 219726kb --hashlimit-name gpr-109863 -j DROP\n`,
  );
});

it('nothing goes by IPv6', () => {
  expect(ipv6Rules().split('\n')).toEqual([
    '*filter',
    ':GPURENT-FORWARD - [0:0]',
    ':GPURENT-INPUT - [0:0]',
    '-A GPURENT-FORWARD -j DROP',
    '-A GPURENT-INPUT -j DROP',
    'COMMIT',
    '',
  ]);
});
