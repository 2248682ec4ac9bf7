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
/** Waits up to 10 seconds for other programs that hold the lock of iptables. */
const WAIT = ['--wait', '10'];

/** The chain that Docker evaluates before its own rules, and whose rules it keeps when it recreates its own. */
const DOCKER_CHAIN = 'DOCKER-USER';
const IPV6 = '/proc/sys/net/ipv6';
const MOST_TRIES = 10;

/**
 * Blocks renters' packets to the host, its networks and its neighbours, and limits their rate so that bandwidth is left for the agent;
 * with iptables.
 */
export class EgressGuard {
  private ensuring: Promise<void> | undefined;

  constructor(private readonly policy: EgressPolicy) {}

  /** Writes all rules again, because other programs can have changed them. Throws SetupError that says what to do. */
  ensure(): Promise<void> {
    this.ensuring ??= this.write().finally(() => (this.ensuring = undefined));
    return this.ensuring;
  }

  /** Tells whether the rules are now the first that apply to renters' packets. */
  async stands(): Promise<boolean> {
    return (await isEntered('iptables')) && (!existsSync(IPV6) || (await isEntered('ip6tables')));
  }

  /** Returns the limit for what all instances send together, in megabits per second. */
  async mbit(): Promise<number> {
    return egressMbit(this.policy, await lineMbit());
  }

  private async write(): Promise<void> {
    try {
      await apply('iptables', ipv4Rules(this.policy, await this.mbit()));
      if (existsSync(IPV6)) await apply('ip6tables', ipv6Rules());
    } catch (error) {
      throw new SetupError(
        `the firewall rules that keep renters away from this host's networks cannot be written (${messageOf(error)}); run the agent as root and install iptables`,
        { cause: error },
      );
    }
  }
}

/** Removes the rules and their chains, when the agent is uninstalled. */
export async function removeEgressRules(): Promise<void> {
  for (const tool of ['iptables', ...(existsSync(IPV6) ? ['ip6tables'] : [])]) await takeAway(tool);
}

async function apply(tool: string, rules: string): Promise<void> {
  await run(`${tool}-restore`, ['--noflush', ...WAIT], rules);
  await enter(tool, 'INPUT', INPUT_CHAIN);
  const hasDocker = await succeeds(tool, '-S', DOCKER_CHAIN);
  if (hasDocker) await enter(tool, DOCKER_CHAIN, FORWARD_CHAIN);
  // Docker moves its own chain to the front when it creates a network, so our rules must be in that chain too.
  if (!hasDocker || !(await isFirst(tool, 'FORWARD', ['-j', DOCKER_CHAIN])))
    await enter(tool, 'FORWARD', FORWARD_CHAIN);
}

/** Makes exactly one jump to `chain`, for renters' packets, the first rule of `from`. */
async function enter(tool: string, from: string, chain: string): Promise<void> {
  const jump = [from, ...jumpTo(chain)].join(' ');
  for (let tries = 1; ; tries++) {
    const rules = (await run(tool, [...WAIT, '-S', from])).split('\n').filter((line) => line.startsWith('-A '));
    const copies = rules.filter((rule) => rule === `-A ${jump}`).length;
    if (rules[0] === `-A ${jump}` && copies === 1) return;
    // Deletes rules by their text, not their number: Docker moves its own rules meanwhile, so a number could delete one of them.
    const lines = [...Array<string>(copies).fill(`-D ${jump}`), `-I ${from} 1 ${jumpTo(chain).join(' ')}`];
    try {
      await run(`${tool}-restore`, ['--noflush', ...WAIT], `*filter\n${lines.join('\n')}\nCOMMIT\n`);
      return;
    } catch (error) {
      // Another program has removed a copy since.
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

/** Tells whether `rule` is the first rule of a chain. */
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

/** Returns the standard output. Rejects with the standard error. */
function run(command: string, args: string[], input = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(command, args, { timeout: TIMEOUT_MS }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${command}: ${stderr.trim() || error.message}`, { cause: error }));
      else resolve(stdout);
    });
    child.stdin?.on('error', () => {}).end(input);
  });
}
