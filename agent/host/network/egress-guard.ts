import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { SetupError, messageOf } from '../../../shared/coded-error.js';
import {
  BRIDGE_PREFIX,
  FORWARD_CHAIN,
  INPUT_CHAIN,
  egressMbit,
  ipv4Rules,
  ipv6Rules,
  type EgressPolicy,
} from '../../domain/egress.js';
import { lineMbit } from './uplink.js';

const TIMEOUT_MS = 30_000;
/** For the lock that other programs may hold on the rules. */
const WAIT = ['--wait', '10'];

/** Docker asks this one first, and keeps what stands in it when it makes its own rules anew. */
const DOCKER_CHAIN = 'DOCKER-USER';
const IPV6 = '/proc/sys/net/ipv6';
const MOST_TRIES = 10;

/** Keeps renters' packets away from the host, its networks and its neighbours, and leaves the agent its part of the line, by the kernel's packet filter. */
export class EgressGuard {
  private ensuring: Promise<void> | undefined;

  constructor(private readonly policy: EgressPolicy) {}

  /** The rules stand, whatever somebody else has done to them. Throws SetupError saying what to do. */
  ensure(): Promise<void> {
    this.ensuring ??= this.write().finally(() => (this.ensuring = undefined));
    return this.ensuring;
  }

  /** Whether renters' packets go through the rules first at this moment. */
  async stands(): Promise<boolean> {
    return (await isEntered('iptables')) && (!existsSync(IPV6) || (await isEntered('ip6tables')));
  }

  /** What all instances may send together, in megabits per second. */
  async mbit(): Promise<number> {
    return egressMbit(this.policy, await lineMbit());
  }

  private async write(): Promise<void> {
    try {
      await apply('iptables', ipv4Rules(this.policy, await this.mbit()));
      if (existsSync(IPV6)) await apply('ip6tables', ipv6Rules());
    } catch (error) {
      throw new SetupError(
        `renters cannot be kept away from this host's networks (${messageOf(error)}); run the agent as root and install iptables`,
        { cause: error },
      );
    }
  }
}

/** Takes the rules away, and the chains that they stand in: for a host that renters have left. */
export async function removeEgressRules(): Promise<void> {
  for (const tool of ['iptables', ...(existsSync(IPV6) ? ['ip6tables'] : [])]) await takeAway(tool);
}

async function apply(tool: string, rules: string): Promise<void> {
  await run(`${tool}-restore`, ['--noflush', ...WAIT], rules);
  await enter(tool, 'INPUT', INPUT_CHAIN);
  const hasDocker = await succeeds(tool, '-S', DOCKER_CHAIN);
  if (hasDocker) await enter(tool, DOCKER_CHAIN, FORWARD_CHAIN);
  // Docker puts its own chain first whenever it makes a network: ours is in that, too.
  if (!hasDocker || !(await isFirst(tool, 'FORWARD', ['-j', DOCKER_CHAIN])))
    await enter(tool, 'FORWARD', FORWARD_CHAIN);
}

/** Renters' packets in chain `from` go through `chain` before anything else. */
async function enter(tool: string, from: string, chain: string): Promise<void> {
  const jump = [from, ...jumpTo(chain)].join(' ');
  for (let tries = 1; ; tries++) {
    const rules = (await run(tool, [...WAIT, '-S', from])).split('\n').filter((line) => line.startsWith('-A '));
    const copies = rules.filter((rule) => rule === `-A ${jump}`).length;
    if (rules[0] === `-A ${jump}` && copies === 1) return;
    // By their text and never by their number: Docker moves its own rules meanwhile, and would lose one of them to us.
    const lines = [...Array<string>(copies).fill(`-D ${jump}`), `-I ${from} 1 ${jumpTo(chain).join(' ')}`];
    try {
      await run(`${tool}-restore`, ['--noflush', ...WAIT], `*filter\n${lines.join('\n')}\nCOMMIT\n`);
      return;
    } catch (error) {
      // Somebody else has taken a copy away since.
      if (tries === MOST_TRIES) throw error;
    }
  }
}

async function takeAway(tool: string): Promise<void> {
  const entries = [
    ['INPUT', INPUT_CHAIN],
    [DOCKER_CHAIN, FORWARD_CHAIN],
    ['FORWARD', FORWARD_CHAIN],
  ] as const;
  for (const [from, chain] of entries) while (await succeeds(tool, '-D', from, ...jumpTo(chain)));
  for (const chain of [INPUT_CHAIN, FORWARD_CHAIN]) {
    if (!(await succeeds(tool, '-S', chain))) continue;
    await run(tool, [...WAIT, '-F', chain]);
    await run(tool, [...WAIT, '-X', chain]);
  }
}

async function isEntered(tool: string): Promise<boolean> {
  const viaDocker =
    (await isFirst(tool, 'FORWARD', ['-j', DOCKER_CHAIN])) &&
    (await isFirst(tool, DOCKER_CHAIN, jumpTo(FORWARD_CHAIN)));
  const forward = viaDocker || (await isFirst(tool, 'FORWARD', jumpTo(FORWARD_CHAIN)));
  return forward && (await isFirst(tool, 'INPUT', jumpTo(INPUT_CHAIN)));
}

/** Whether a chain's first rule is this one. */
async function isFirst(tool: string, chain: string, rule: string[]): Promise<boolean> {
  const first = await run(tool, [...WAIT, '-S', chain, '1']).catch(() => '');
  return first.trim() === ['-A', chain, ...rule].join(' ');
}

function jumpTo(chain: string): string[] {
  return ['-i', `${BRIDGE_PREFIX}+`, '-j', chain];
}

function succeeds(tool: string, ...args: string[]): Promise<boolean> {
  return run(tool, [...WAIT, ...args]).then(
    () => true,
    () => false,
  );
}

/** Answers what it has printed. */
function run(command: string, args: string[], input = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(command, args, { timeout: TIMEOUT_MS }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${command}: ${stderr.trim() || error.message}`, { cause: error }));
      else resolve(stdout);
    });
    child.stdin?.on('error', () => {}).end(input);
  });
}
