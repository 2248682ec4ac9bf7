import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { EgressGuard } from '../../agent/host/network/egress-guard.js';
import { OwnFirewall } from '../rig/own-firewall.js';

const run = promisify(execFile);
const CHAIN = 'GPURENT-TEST';
const ROUNDS = 40;

const iptables = (...args: string[]) => run('iptables', ['--wait', '10', ...args]);
const rules = async () => (await iptables('-S', 'FORWARD')).stdout.split('\n').filter((line) => line.startsWith('-A '));

let firewall: OwnFirewall;
beforeAll(() => {
  firewall = new OwnFirewall();
});
afterAll(() => firewall.remove());
afterEach(async () => {
  await iptables('-D', 'FORWARD', '-j', CHAIN).catch(() => undefined);
  await iptables('-X', CHAIN).catch(() => undefined);
});

it.each([1, 8, 100, 900, 2_500, 9_000, 22_500, 90_000, 180_000])(
  'the packet filter takes %i Mbit/s for a rate',
  async (mostMbit) => {
    await new EgressGuard({ resolvers: [], allowed: [], instances: '10.213.0.0/16', mostMbit }).ensure();
    expect((await iptables('-S', 'GPURENT-FORWARD')).stdout).toContain('--hashlimit-above');
  },
);

it('the guard of egress takes no rule of Docker’s, which moves its own meanwhile', async () => {
  const guard = new EgressGuard({ resolvers: ['1.1.1.1'], allowed: [], instances: '10.213.0.0/16', mostMbit: null });
  await iptables('-N', CHAIN);
  await iptables('-I', 'FORWARD', '-j', CHAIN);
  const moves = (async () => {
    for (let round = 0; round < ROUNDS; round++) {
      await iptables('-D', 'FORWARD', '-j', CHAIN);
      await iptables('-I', 'FORWARD', '-j', CHAIN);
    }
    return 'moved' as const;
  })();
  // Until every move is made.
  while ((await Promise.race([moves, guard.ensure()])) !== 'moved');
  // One that was under way may have looked before the last move: the next one looks anew.
  await guard.ensure();
  await guard.ensure();
  expect(await guard.stands()).toBe(true);
  expect(new Set(await rules()).size).toBe((await rules()).length);
});

it('the guard of egress writes its rules again where another program has changed them, and only there', async () => {
  const guard = new EgressGuard({ resolvers: ['1.1.1.1'], allowed: [], instances: '10.213.0.0/16', mostMbit: null });
  await guard.ensure();
  // A rule that is written again has counted nothing.
  const counts = async () => (await iptables('-v', '-S', 'GPURENT-INPUT')).stdout;
  await iptables('-R', 'GPURENT-INPUT', '2', '-j', 'REJECT', '--reject-with', 'icmp-admin-prohibited', '-c', '5', '7');
  await guard.ensure();
  expect(await counts()).toContain('-c 5 7');
  await guard.rewrite();
  expect(await counts()).not.toContain('-c 5 7');
  const own = async () =>
    (await iptables('-S', 'GPURENT-FORWARD')).stdout + (await iptables('-S', 'GPURENT-EGRESS')).stdout;
  const rulesBefore = await own();
  const changes = [
    () => iptables('-D', 'GPURENT-FORWARD', '1'),
    () => iptables('-I', 'GPURENT-FORWARD', '1', '-j', 'RETURN'),
    () => iptables('-R', 'GPURENT-FORWARD', '2', '-j', 'RETURN'),
    () => iptables('-F', 'GPURENT-FORWARD'),
    () => iptables('-F', 'GPURENT-EGRESS'),
    () => iptables('-F', 'INPUT'),
    () => run('ip6tables', ['--wait', '10', '-F', 'GPURENT-INPUT']),
  ];
  for (const change of changes) {
    await change();
    await guard.ensure();
    expect(await own()).toBe(rulesBefore);
    expect(await guard.stands()).toBe(true);
    expect((await run('ip6tables', ['-S', 'GPURENT-INPUT'])).stdout).toContain('-j DROP');
  }
});
