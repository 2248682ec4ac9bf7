import { execFile } from 'node:child_process';
import { messageOf } from '../../../shared/coded-error.js';

const TIMEOUT_S = 5;
const LONGEST_S = 2 * TIMEOUT_S;
const OUTPUT_BYTES = 16 * 1024;
/** The user and group without rights. */
const NOBODY = 65_534;
const KEY = /^\S+ (ssh-ed25519 [A-Za-z0-9+/]{68})$/m;
/** With these, timeout(1) ends if it cannot run a program, or does not find it. */
const NOT_RUN = [126, 127];

/**
 * Asks the SSH servers at an address of this host for their ed25519 host keys. A renter's server can answer anything, so a process without
 * rights reads it (ssh-keyscan). To become another account, the agent needs CAP_SETUID and CAP_SETGID.
 */
export class HostKeys {
  /** Why no server could be asked the last time; empty: one could be, or none was asked yet. */
  fault = '';

  constructor(private readonly address: string) {}

  /** Asks the servers that a host publishes at an address; 0.0.0.0: at any. */
  static of({ bindAddress }: { bindAddress: string }): HostKeys {
    return new HostKeys(bindAddress === '0.0.0.0' ? '127.0.0.1' : bindAddress);
  }

  /** What the parts of the agent ask. */
  readonly parts = { hostKeyAt: (port: number) => this.at(port), hostKeyFault: () => this.fault };

  /**
   * Returns a host key as in a known_hosts file (`ssh-ed25519 AAAA...`); empty: there is none. Rejects if this host cannot ask.
   */
  async at(port: number): Promise<string> {
    const said = await this.scan(['-T', String(TIMEOUT_S), '-t', 'ed25519', '-p', String(port), this.address]);
    return KEY.exec(said)?.[1] ?? '';
  }

  /** Rejects if this host cannot ask SSH servers for their keys. */
  async check(): Promise<void> {
    // It prints how it is used.
    await this.scan([]);
  }

  private async scan(args: readonly string[]): Promise<string> {
    this.fault = '';
    try {
      return await runAsNobody('ssh-keyscan', args);
    } catch (error) {
      this.fault = messageOf(error);
      throw error;
    }
  }
}

/**
 * Returns what a program prints, however it ends. It runs as an account without rights, which the agent cannot signal without CAP_KILL: so
 * timeout(1) ends it, as the same account. Rejects if the program cannot be run.
 */
function runAsNobody(program: string, args: readonly string[]): Promise<string> {
  const account = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  const limited = ['--signal=KILL', String(LONGEST_S), program, ...args];
  return new Promise((resolve, reject) => {
    execFile('timeout', limited, { ...account, maxBuffer: OUTPUT_BYTES }, (error, stdout) => {
      const { syscall = '', code } = (error ?? {}) as NodeJS.ErrnoException;
      if (syscall.startsWith('spawn'))
        reject(new Error(`${program} cannot be run as an account without rights: ${messageOf(error)}`));
      else if (NOT_RUN.includes(Number(code))) reject(new Error(`${program} is not installed, or cannot be run`));
      else resolve(stdout);
    });
  });
}
