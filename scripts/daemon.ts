import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { once } from 'node:events';
import { systemClock } from '../shared/clock.js';

const STOP_PATIENCE_MS = 15_000;

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
    throw new Error(
      `${this.name} ended before it was ready: ${readFileSync(this.logFile, 'utf8').trim().split('\n').at(-1) ?? ''}`,
    );
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exited = once(this.child, 'exit');
    this.child.kill(signal);
    const killer = systemClock.schedule(STOP_PATIENCE_MS, () => this.child.kill('SIGKILL'));
    await exited;
    killer.cancel();
  }
}
