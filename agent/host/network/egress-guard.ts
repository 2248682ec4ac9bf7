import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { SetupError, messageOf } from '../../../shared/coded-error.js';
import {
  BRIDGE_PREFIX,
  FORWARD_CHAIN,
  INPUT_CHAIN,
  ipv4Rules,
  ipv6Rules,
  type EgressPolicy,
} from '../../domain/egress.js';

const TIMEOUT_MS = 30_000;
/** For the lock that other programs may hold on the rules. */
const WAIT = ['--wait', '10'];

/** Docker asks this one first, and keeps what stands in it when it makes its own rules anew. */
const DOCKER_CHAIN = 'DOCKER-USER';

/** Keeps renters' packets away from the host, its networks and its neighbours, by the kernel's packet filter. */
export class EgressGuard {
  private ensuring: Promise<void> | undefined;

  constructor(private readonly policy: EgressPolicy) {}

  /** The rules stand, whatever somebody else has done to them. Throws SetupError saying what to do. */
  ensure(): Promise<void> {
    this.ensuring ??= this.write().finally(() => (this.ensuring = undefined));
    return this.ensuring;
  }

  /** Whether renters' packets go through the rules at this moment. */
  async stands(): Promise<boolean> {
    const input = await succeeds('iptables', '-C', 'INPUT', ...jumpTo(INPUT_CHAIN));
    const forward = await succeeds('iptables', '-C', await forwardChain('iptables'), ...jumpTo(FORWARD_CHAIN));
    return input && forward;
  }

  private async write(): Promise<void> {
    try {
      await apply('iptables', ipv4Rules(this.policy));
      if (existsSync('/proc/sys/net/ipv6')) await apply('ip6tables', ipv6Rules());
    } catch (error) {
      throw new SetupError(
        `renters cannot be kept away from this host's networks (${messageOf(error)}); run the agent as root and install iptables`,
        { cause: error },
      );
    }
  }
}

async function apply(tool: string, rules: string): Promise<void> {
  await run(`${tool}-restore`, ['--noflush', ...WAIT], rules);
  await enter(tool, await forwardChain(tool), FORWARD_CHAIN);
  await enter(tool, 'INPUT', INPUT_CHAIN);
}

/** Renters' packets in chain `from` go through `chain` first. */
async function enter(tool: string, from: string, chain: string): Promise<void> {
  const rule = jumpTo(chain);
  if (!(await succeeds(tool, '-C', from, ...rule))) await run(tool, [...WAIT, '-I', from, '1', ...rule]);
}

async function forwardChain(tool: string): Promise<string> {
  return (await succeeds(tool, '-S', DOCKER_CHAIN)) ? DOCKER_CHAIN : 'FORWARD';
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

function run(command: string, args: string[], input = ''): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = execFile(command, args, { timeout: TIMEOUT_MS }, (error, _, stderr) => {
      if (error) reject(new Error(`${command}: ${stderr.trim() || error.message}`, { cause: error }));
      else resolve();
    });
    child.stdin?.on('error', () => {}).end(input);
  });
}
