import { fork, type ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import type { Clock, Timer } from '../../shared/clock.js';
import { messageOf } from '../../shared/coded-error.js';
import type { Logger } from '../../shared/logger.js';
import type { KeyAndCertificate } from '../../shared/server-identity.js';
import { MINUTE_MS } from '../../shared/time.js';
import type { GuardedPort, WorkerOrder, WorkerWord } from './state.js';

/** JavaScript memory of one worker. */
const HEAP_MB = 96;
/** Connections that are on their way to a worker at once. */
const MAX_SENT = 16;
/** Connections that wait for that; the oldest gives way to a newer one. */
const MAX_WAITING = 1_024;
/** A worker that has not taken a connection after this time is ended. */
const TAKE_MS = 15_000;
/** Starts of one instance's worker in a minute: whoever can crash it does not make this host start processes all day. */
const MAX_STARTS = 12;

/** How workers are run. */
export interface WorkerSettings {
  /** The program that is started with `worker` and `idleMs` as its arguments. */
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

/** The worker of one instance: started by the first connection, ended when it is idle, started again after a crash. */
export class WorkerProcess {
  private child: ChildProcess | undefined;
  /** Sent and not taken yet: open here, too, until the worker says that it has them. */
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

  /** Hands a connection over. */
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

  /** In their order: the gate in the worker serves the newest of an address first. */
  private handOver(): void {
    while (this.sent.length < MAX_SENT) {
      const visit = this.waiting.shift();
      if (!visit) return;
      if (visit.socket.destroyed) continue;
      this.sent.push(visit);
      if (this.sent.length === 1) this.watch();
      const order: WorkerOrder = { kind: 'connection', hostPort: visit.hostPort };
      // Of the socket, Node would lose sight if the worker ended before it has it: so it stays open here until then.
      this.child?.send(order, visit.socket, { keepOpen: true }, () => undefined);
    }
  }

  private watch(): void {
    this.watchdog?.cancel();
    if (this.sent.length === 0) return;
    this.watchdog = this.settings.clock.schedule(TAKE_MS, () => {
      this.settings.logger.warn({ instanceId: this.instanceId }, 'the worker of guarded ports hangs, and is ended');
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
