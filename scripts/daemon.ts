import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { once } from 'node:events';

/** A program of ours as a child process. */
export class Daemon {
  private constructor(
    private readonly child: ChildProcess,
    readonly name: string,
  ) {}

  /** Starts `node script args`; its log goes to `logFile`. */
  static start(name: string, script: string, args: string[], env: Record<string, string>, logFile: string): Daemon {
    const log = openSync(logFile, 'a', 0o600);
    const child = spawn(process.execPath, [script, ...args], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', log],
      // Ctrl-C reaches the program that started it, which ends it in order.
      detached: true,
    });
    closeSync(log);
    return new Daemon(child, name);
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
    throw new Error(`${this.name} ended before it was ready`);
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exited = once(this.child, 'exit');
    this.child.kill(signal);
    await exited;
  }
}
