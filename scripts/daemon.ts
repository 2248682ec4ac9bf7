import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { once } from 'node:events';
import { systemClock } from '../shared/clock.js';

const STOP_PATIENCE_MS = 15_000;
/** Of a log without a refusal: enough for an error with its stack. */
const LAST_LINES = 20;
/** The last line of our programs when they refuse to run. */
const REFUSAL = /^gpurent[a-z-]*: /;

/** One of our programs as a child process. */
export class Daemon {
  private constructor(
    private readonly child: ChildProcess,
    readonly name: string,
    private readonly logFile: string,
  ) {}

  /** Starts `node script args` with its log in `logFile`. A detached one gets no signal from Ctrl-C: the caller must stop it. */
  static start(
    name: string,
    script: string,
    args: string[],
    env: Record<string, string>,
    logFile: string,
    detached = false,
  ): Daemon {
    const log = openSync(logFile, 'a', 0o600);
    const child = spawn(process.execPath, [script, ...args], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', log],
      detached,
    });
    closeSync(log);
    return new Daemon(child, name, logFile);
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** Parses the first printed line as JSON. Rejects with the reason from its log if the program ends before. */
  async firstLine<T>(): Promise<T> {
    const { stdout } = this.child;
    if (!stdout) throw new Error(`${this.name} has no output`);
    let text = '';
    for await (const chunk of stdout) {
      text += String(chunk);
      if (text.includes('\n')) return JSON.parse(text.slice(0, text.indexOf('\n'))) as T;
    }
    throw new Error(`${this.name} ended before it was ready: ${this.loggedReason()}`);
  }

  /** Throws an error with the reason from its log if the program has ended. */
  requireRunning(): void {
    if (this.hasEnded) throw this.end();
  }

  /** Rejects with the reason from its log when the program ends. */
  async untilEnded(): Promise<never> {
    if (!this.hasEnded) await once(this.child, 'exit');
    throw this.end();
  }

  private end(): Error {
    return new Error(`${this.name} has ended: ${this.loggedReason()}`);
  }

  private get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** The line with which it refused, or else the end of its log, such as an error with its stack. */
  private loggedReason(): string {
    const lines = readFileSync(this.logFile, 'utf8').trim().split('\n');
    // Children of the program can log after it.
    return lines.findLast((line) => REFUSAL.test(line)) ?? lines.slice(-LAST_LINES).join('\n');
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (this.hasEnded) return;
    const exited = once(this.child, 'exit');
    this.child.kill(signal);
    const killer = systemClock.schedule(STOP_PATIENCE_MS, () => this.child.kill('SIGKILL'));
    await exited;
    killer.cancel();
  }
}
