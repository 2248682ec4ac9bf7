import { fork, type ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import type { Clock, Timer } from '../../shared/clock.js';
import { messageOf } from '../../shared/coded-error.js';
import type { Logger } from '../../shared/logger.js';
import type { KeyAndCertificate } from '../../shared/network/server-identity.js';
import { MINUTE_MS } from '../../shared/time.js';
import type { GuardedPort, WorkerOrder, WorkerWord } from './state.js';

/** JavaScript memory of one worker. */
const HEAP_MB = 96;
/** Most connections that are on their way to a worker at once. */
const MAX_SENT = 16;
/** Most connections that wait for that; a newer one displaces the oldest. */
const MAX_WAITING = 1_024;
/** A worker that has not taken a connection within this time is ended. */
const TAKE_MS = 15_000;
/**
 * Most starts of one instance's worker in a minute, so that a visitor who can crash it cannot make this host start
 * processes all day.
 */
const MAX_STARTS = 12;

/** The settings of all workers. */
export interface WorkerSettings {
  /** The program, which is started with `worker` and `idleMs` as its arguments. */
  entry: string;
  /** A worker that has had no connection for this long is ended. */
  idleMs: number;
  clock: Clock;
  logger: Logger;
}

interface Visit {
  hostPort: number;
  socket: Socket;
}

/**
 * Runs the worker of one instance: starts it at the first connection, ends it when it is idle, and starts it again
 * after a crash.
 */
export class WorkerProcess {
  private child: ChildProcess | undefined;
  /** Sent and not taken yet; they stay open here until the worker confirms that it has them. */
  private sent: Visit[] = [];
  private waiting: Visit[] = [];
  private readonly starts: number[] = [];
  private watchdog: Timer | undefined;

  constructor(
    private readonly instanceId: string,
    private readonly settings: WorkerSettings,
    private ports: GuardedPort[],
    private identity: KeyAndCertificate | null,
  ) {}

  configure(ports: GuardedPort[], identity: KeyAndCertificate | null): void {
    [this.ports, this.identity] = [ports, identity];
    this.child?.send({ kind: 'configure', ports, identity } satisfies WorkerOrder, () => undefined);
  }

  /** Passes a connection to the worker. */
  take(hostPort: number, socket: Socket): void {
    socket.on('error', () => socket.destroy());
    this.child ??= this.start();
    if (!this.child) return void socket.destroy();
    this.waiting.push({ hostPort, socket });
    if (this.waiting.length > MAX_WAITING) this.waiting.shift()?.socket.destroy();
    this.handOver();
  }

  /** Ends the process and all of its connections. */
  end(): void {
    this.child?.kill('SIGKILL');
    this.forget();
  }

  private start(): ChildProcess | undefined {
    const { entry, idleMs, clock, logger } = this.settings;
    const now = clock.monotonic();
    while (this.starts[0] !== undefined && now - this.starts[0] > MINUTE_MS) this.starts.shift();
    if (this.starts.length >= MAX_STARTS) return undefined;
    this.starts.push(now);
    const child = fork(entry, ['worker', String(idleMs)], {
      execArgv: [`--max-old-space-size=${HEAP_MB}`],
      env: {},
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    child.on('error', (error) => logger.warn({ instanceId: this.instanceId }, messageOf(error)));
    if (child.pid === undefined) return undefined;
    child.on('exit', (code, signal) => {
      if (this.child !== child) return;
      logger.warn({ instanceId: this.instanceId, code, signal }, 'the worker of guarded ports has ended');
      this.forget();
    });
    child.on('message', (word: WorkerWord) => {
      if (this.child === child) this.hear(word);
    });
    child.send(
      { kind: 'configure', ports: this.ports, identity: this.identity } satisfies WorkerOrder,
      () => undefined,
    );
    return child;
  }

  private hear({ kind }: WorkerWord): void {
    if (kind === 'taken') {
      this.sent.shift()?.socket.destroy();
      this.watch();
      this.handOver();
    } else if (this.sent.length === 0) this.end();
  }

  /** Sends connections in order of arrival, because the gate in the worker serves the newest of an address first. */
  private handOver(): void {
    while (this.sent.length < MAX_SENT) {
      const visit = this.waiting.shift();
      if (!visit) return;
      if (visit.socket.destroyed) continue;
      this.sent.push(visit);
      if (this.sent.length === 1) this.watch();
      const order: WorkerOrder = { kind: 'connection', hostPort: visit.hostPort };
      // Node would lose the socket if the worker ended before receiving it, so the socket stays open here until then.
      this.child?.send(order, visit.socket, { keepOpen: true }, () => undefined);
    }
  }

  private watch(): void {
    this.watchdog?.cancel();
    if (this.sent.length === 0) return;
    this.watchdog = this.settings.clock.schedule(TAKE_MS, () => {
      this.settings.logger.warn({ instanceId: this.instanceId }, 'ending a worker of guarded ports that hangs');
      this.end();
    });
  }

  private forget(): void {
    this.child = undefined;
    this.watchdog?.cancel();
    for (const { socket } of [...this.sent, ...this.waiting]) socket.destroy();
    [this.sent, this.waiting] = [[], []];
  }
}
