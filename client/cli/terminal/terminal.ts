import type { Readable, Writable } from 'node:stream';

/** Everything outside of the program that a command can touch, apart from files and the API. */
export interface Terminal {
  stdin: Readable;
  stdout: Writable;
  stderr: Writable;
  env: Readonly<Record<string, string | undefined>>;
  /** Whether a person reads stdout, and in how many columns. */
  columns: number | undefined;
  /** Whether a person reads stderr, where progress is shown. */
  showsProgress: boolean;
  /** Whether a person can answer questions. */
  isInteractive: boolean;
  /** Milliseconds since 1970. */
  now: () => number;
  /** Rejects if the signal is aborted meanwhile. */
  wait: (ms: number, signal?: AbortSignal) => Promise<void>;
  /** Aborted by Ctrl-C. */
  interrupted: AbortSignal;
  /** Runs another program in this terminal. Resolves with its exit code; rejects with ENOENT if there is no such program. */
  run: (program: string, args: readonly string[]) => Promise<number>;
  /** Returns what another program prints, which asks nothing; empty if it fails, is missing, or takes long. */
  read: (program: string, args: readonly string[]) => Promise<string>;
}

const READ_MS = 5_000;

/** Returns the terminal of this process. */
export function processTerminal(): Terminal {
  const interrupted = new AbortController();
  // The second Ctrl-C ends the program at once.
  process.once('SIGINT', () => interrupted.abort());
  const { stdin, stdout, stderr, env } = process;
  return {
    stdin,
    stdout,
    stderr,
    env,
    columns: stdout.isTTY ? stdout.columns || 80 : undefined,
    showsProgress: stderr.isTTY,
    isInteractive: stdin.isTTY && stdout.isTTY && stderr.isTTY,
    now: Date.now,
    wait: async (ms, signal = interrupted.signal) => {
      const { setTimeout: sleep } = await import('node:timers/promises');
      await sleep(ms, undefined, { signal });
    },
    interrupted: interrupted.signal,
    run: runHere,
    read: readFrom,
  };
}

async function readFrom(program: string, args: readonly string[]): Promise<string> {
  const { execFile } = await import('node:child_process');
  return new Promise((resolve) => {
    const child = execFile(program, args, { timeout: READ_MS }, (error, stdout) => resolve(error ? '' : stdout));
    child.stdin?.end();
  });
}

async function runHere(program: string, args: readonly string[]): Promise<number> {
  const [{ spawn }, { constants }] = await Promise.all([import('node:child_process'), import('node:os')]);
  // Ctrl-C in the terminal reaches the child as well, which decides what it means.
  const ignore = () => undefined;
  process.on('SIGINT', ignore);
  try {
    return await new Promise((resolve, reject) => {
      const child = spawn(program, args, { stdio: 'inherit' });
      child.once('error', reject);
      // As shells do for a program that a signal has ended.
      child.once('exit', (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
    });
  } finally {
    process.off('SIGINT', ignore);
  }
}
