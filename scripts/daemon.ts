import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { once } from 'node:events';
import { systemClock } from '../shared/clock.js';

const STOP_PATIENCE_MS = 15_000;
/** What our programs end with where they cannot go on. */
const REFUSAL = /^gpurent[a-z-]*: /;

/** A program of ours as a child process. */
export class Daemon {
  private constructor(
    private readonly child: ChildProcess,
    readonly name: string,
    private readonly logFile: string,
  ) {}

  /** Starts `node script args`; its log goes to `logFile`. Detached, it does not hear Ctrl-C: who started it ends it in order. */
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

  /** The first line that it prints, as JSON. */
  async firstLine<T>(): Promise<T> {
    const { stdout } = this.child;
    if (!stdout) throw new Error(`${this.name} has no output`);
    let text = '';
    for await (const chunk of stdout) {
      text += String(chunk);
      if (text.includes('\n')) return JSON.parse(text.slice(0, text.indexOf('\n'))) as T;
    }
    throw new Error(`${this.name} ended before it was ready: ${this.lastLine()}`);
  }

  /** Throws its last line once it has ended. */
  requireRunning(): void {
    if (this.hasEnded) throw this.end();
  }

  /** Rejects with its last line when it ends. */
  async untilEnded(): Promise<never> {
    if (!this.hasEnded) await once(this.child, 'exit');
    throw this.end();
  }

  private end(): Error {
    return new Error(`${this.name} has ended: ${this.lastLine()}`);
  }

  private get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  private lastLine(): string {
    const lines = readFileSync(this.logFile, 'utf8').trim().split('\n');
    // Its own children may log after it.
    return lines.findLast((line) => REFUSAL.test(line)) ?? lines.at(-1) ?? '';
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
