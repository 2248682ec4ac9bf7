import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { SetupError, messageOf } from '../../../shared/coded-error.js';
import {
  DOCKER_CHAIN,
  EGRESS_CHAIN,
  FORWARD_CHAIN,
  INPUT_CHAIN,
  OWN_CHAINS,
  egressMbit,
  ipv4Rules,
  ipv6Rules,
  isRefusing,
  jumpTo,
  missingJumps,
  ownRules,
  parseFilterTable,
  type EgressPolicy,
  type FilterTable,
} from '../../domain/egress.js';
import { lineMbit } from './uplink.js';

const TIMEOUT_MS = 30_000;
/** Far more than the rules of a host with a thousand published ports. */
const OUTPUT_BYTES = 16 * 1024 * 1024;
/** Waits up to 10 seconds for other programs that hold the lock of iptables. */
const WAIT = ['--wait', '10'];
const IPV6 = '/proc/sys/net/ipv6';
const MOST_TRIES = 10;

/** The rules that were last written with a tool, as this agent wrote them and as the tool printed them right afterwards. */
interface Written {
  input: string;
  printed: string;
}

/**
 * Blocks renters' packets to the host, its networks and its neighbours, and limits their rate so that bandwidth is left for the agent;
 * with iptables.
 */
export class EgressGuard {
  private ensuring: Promise<void> | undefined;
  private readonly written = new Map<string, Written>();

  constructor(private readonly policy: EgressPolicy) {}

  /**
   * Reads all rules, because other programs can have changed them, and writes them again unless they are as this guard has written
   * them. Throws SetupError that says what to do.
   */
  ensure(): Promise<void> {
    this.ensuring ??= this.bringInForce().finally(() => (this.ensuring = undefined));
    return this.ensuring;
  }

  /** Writes all rules, also where they look as this guard has written them. Throws SetupError that says what to do. */
  rewrite(): Promise<void> {
    this.written.clear();
    return this.ensure();
  }

  /** Tells whether renters' packets meet the rules now before any other rule can let them pass. */
  async stands(): Promise<boolean> {
    const tables = await Promise.all(tools().map(readTable)).catch(() => []);
    return tables.length > 0 && tables.every(isRefusing);
  }

  /** Returns the limit for what all instances send together, in megabits per second. */
  async mbit(): Promise<number> {
    return egressMbit(this.policy, await lineMbit());
  }

  private async bringInForce(): Promise<void> {
    try {
      const ipv4 = ipv4Rules(this.policy, await this.mbit());
      await Promise.all(tools().map((tool) => this.apply(tool, tool === 'iptables' ? ipv4 : ipv6Rules())));
    } catch (error) {
      throw new SetupError(
        `the firewall rules that keep renters away from this host's networks cannot be written (${messageOf(error)}); run the agent as root and install iptables`,
        { cause: error },
      );
    }
  }

  private async apply(tool: string, input: string): Promise<void> {
    const written = this.written.get(tool);
    if (written?.input === input && (await isAsPrinted(tool, written.printed))) return;
    this.written.delete(tool);
    await run(`${tool}-restore`, ['--noflush', ...WAIT], input);
    const printed = ownRules(await enter(tool));
    // Where another program has changed them since, the next call writes them again.
    if (countRules(printed) === countRules(input)) this.written.set(tool, { input, printed });
  }
}

function tools(): string[] {
  return ['iptables', ...(existsSync(IPV6) ? ['ip6tables'] : [])];
}

async function readTable(tool: string): Promise<FilterTable> {
  return parseFilterTable(await run(`${tool}-save`, ['-t', 'filter']));
}

async function isAsPrinted(tool: string, printed: string): Promise<boolean> {
  const table = await readTable(tool);
  return ownRules(table) === printed && missingJumps(table).length === 0;
}

/** Makes the jumps to our chains the first rules where renters' packets pass. Returns the table that it has read last. */
async function enter(tool: string): Promise<FilterTable> {
  for (let tries = 1; ; tries++) {
    const table = await readTable(tool);
    const lines = missingJumps(table);
    if (lines.length === 0) return table;
    try {
      await run(`${tool}-restore`, ['--noflush', ...WAIT], `*filter\n${lines.join('\n')}\nCOMMIT\n`);
      if (tries === MOST_TRIES) return table;
    } catch (error) {
      // Another program has removed a copy since.
      if (tries === MOST_TRIES) throw error;
    }
  }
}

function countRules(text: string): number {
  return text.split('\n').filter((line) => line.startsWith('-')).length;
}

/** Removes the rules and their chains, when the agent is uninstalled. */
export async function removeEgressRules(): Promise<void> {
  for (const tool of tools()) await takeAway(tool);
}

async function takeAway(tool: string): Promise<void> {
  const entries = [
    ['INPUT', INPUT_CHAIN],
    [DOCKER_CHAIN, FORWARD_CHAIN],
    ['FORWARD', FORWARD_CHAIN],
    ['FORWARD', EGRESS_CHAIN],
  ] as const;
  for (const [from, chain] of entries) while (await succeeds(tool, '-D', from, ...jumpTo(chain).split(' ')));
  for (const chain of OWN_CHAINS) {
    if (!(await succeeds(tool, '-S', chain))) continue;
    await run(tool, [...WAIT, '-F', chain]);
    await run(tool, [...WAIT, '-X', chain]);
  }
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
    const child = execFile(command, args, { timeout: TIMEOUT_MS, maxBuffer: OUTPUT_BYTES }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${command}: ${stderr.trim() || error.message}`, { cause: error }));
      else resolve(stdout);
    });
    child.stdin?.on('error', () => {}).end(input);
  });
}
