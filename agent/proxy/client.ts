import { spawn } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { withTimeout, type Clock, type Timer } from '../../shared/clock.js';
import { messageOf } from '../../shared/coded-error.js';
import type { Logger } from '../../shared/logger.js';
import { PacedLog } from '../../shared/paced-log.js';
import type { ServerIdentity } from '../../shared/network/server-identity.js';
import { programFile } from '../../shared/version.js';
import { readJsonLines, socketOf, writeJsonLine } from './json-lines.js';
import type { GuardedPort, PortFailure, ProxyReply, ProxyState } from './state.js';

/** A reply only names the ports that failed, so the agent reads no more than this from the proxy. */
const REPLY_BYTES = 1024 * 1024;
const REPLY_MS = 5_000;
const RETRY_MS = 1_000;

/** Opens a connection to the access proxy. */
export type DialProxy = () => Socket;

/** Connects to the proxy that a unit of systemd runs behind this socket. */
export function proxyUnit(socket: string): DialProxy {
  return () => connect({ path: socket });
}

/** Starts a proxy as a process of the agent, which ends with the agent. `program`: see main.ts. */
export function proxyChild(program = programFile('agent/proxy/main')): DialProxy {
  return () => {
    const stdio = ['ignore', 'ignore', 'inherit', 'pipe'] as const;
    const child = spawn(process.execPath, [program, 'child'], { env: {}, stdio: [...stdio] });
    return socketOf(child);
  };
}

/** The agent's side of the access proxy: sends it the guarded ports of all instances, and again when it reconnects. */
export class ProxyClient {
  private readonly instances = new Map<string, GuardedPort[]>();
  /** Instances with a port that could not be opened, or about which the proxy has not replied yet. */
  private readonly unsettled = new Set<string>();
  private readonly replies = new Map<
    number,
    { resolve: (failures: PortFailure[]) => void; reject: (reason: Error) => void }
  >();
  private socket: Socket | undefined;
  /** Of the next connection, or of the next try at ports that could not be opened. */
  private timer: Timer | undefined;
  private isComplete = false;
  private revision = 0;
  private stopped = false;

  constructor(
    private readonly dial: DialProxy,
    private readonly bindAddress: string,
    private readonly clock: Clock,
    logger: Logger,
    private readonly identity?: ServerIdentity,
    private readonly paced = new PacedLog(clock, logger),
  ) {
    identity?.follow(() => this.tellAgain());
  }

  /** The scheme of links to guarded ports. */
  get scheme(): 'http' | 'https' {
    return this.identity ? 'https' : 'http';
  }

  /** Connects, and reconnects whenever the connection ends. */
  start(): void {
    const socket = this.dial();
    this.socket = socket;
    socket.on('error', (error) => this.paced.write('error', `the access proxy cannot be reached: ${messageOf(error)}`));
    socket.once('close', () => this.reconnect(socket));
    readJsonLines(socket, REPLY_BYTES, (value) => {
      const { revision, failures } = requireReply(value);
      this.replies.get(revision)?.resolve(failures);
    });
    this.tellAgain();
  }

  /** Declares that all guarded ports of this host are known, so that the proxy closes every other port. */
  complete(): void {
    this.isComplete = true;
    this.tellAgain();
  }

  /** Makes the proxy guard exactly these ports of an instance. Rejects if the proxy does not confirm it. */
  async set(instanceId: string, ports: readonly GuardedPort[]): Promise<void> {
    const known = this.instances.get(instanceId) ?? [];
    if (isDeepStrictEqual(known, ports) && !this.unsettled.has(instanceId)) return;
    if (ports.length > 0) this.instances.set(instanceId, [...ports]);
    else this.instances.delete(instanceId);
    this.unsettled.add(instanceId);
    const failed = (await this.tell()).find(({ hostPort }) => ports.some((port) => port.hostPort === hostPort));
    if (failed) throw new Error(`port ${failed.hostPort}: ${failed.reason}`);
    this.unsettled.delete(instanceId);
  }

  /** Ends the connection. The proxy of a unit goes on with the last state; a process of the agent ends. */
  stop(): void {
    this.stopped = true;
    this.timer?.cancel();
    this.socket?.destroy();
    this.endReplies();
  }

  private reconnect(ended: Socket): void {
    if (this.stopped || this.socket !== ended) return;
    this.endReplies();
    this.schedule(() => this.start());
  }

  private schedule(run: () => void): void {
    this.timer?.cancel();
    this.timer = this.clock.schedule(RETRY_MS, run);
  }

  private endReplies(): void {
    for (const { reject } of this.replies.values()) reject(new Error('the connection to the access proxy has ended'));
  }

  /**
   * Sends the state. A failure is only logged, because the next connection, or the next `set`, sends the state again.
   * Nobody waits for these replies, so a port that could not be opened is tried again here.
   */
  private tellAgain(): void {
    if (!this.socket) return;
    const settle = (failures: PortFailure[]) => {
      const [failed] = failures;
      if (!failed || !this.socket || this.socket.destroyed) return;
      this.paced.write('warn', `port ${failed.hostPort}: ${failed.reason}`);
      this.schedule(() => this.tellAgain());
    };
    void this.tell().then(settle, (error: unknown) => {
      if (!this.stopped) this.paced.write('warn', messageOf(error));
    });
  }

  private async tell(): Promise<PortFailure[]> {
    const socket = this.socket;
    if (!socket || socket.destroyed) throw new Error('the access proxy is not connected');
    const revision = ++this.revision;
    const state: ProxyState = {
      revision,
      isComplete: this.isComplete,
      bindAddress: this.bindAddress,
      identity: this.identity?.current ?? null,
      instances: [...this.instances].map(([instanceId, ports]) => ({ instanceId, ports })),
    };
    const reply = new Promise<PortFailure[]>((resolve, reject) => this.replies.set(revision, { resolve, reject }));
    try {
      writeJsonLine(socket, state);
      return await withTimeout(this.clock, REPLY_MS, reply, () => {
        throw new Error('the access proxy does not answer');
      });
    } finally {
      this.replies.delete(revision);
    }
  }
}

/** Checks a reply strictly, because the proxy parses what strangers send. Throws if it is malformed. */
function requireReply(value: unknown): ProxyReply {
  const { revision, failures } = value as Partial<ProxyReply>;
  const fits = (failure: Partial<PortFailure>) =>
    typeof failure.hostPort === 'number' && typeof failure.reason === 'string';
  if (typeof revision !== 'number' || !Array.isArray(failures) || !failures.every(fits))
    throw new Error('the access proxy sent a malformed reply');
  return { revision, failures };
}
