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
}

/** Returns the terminal of this process. */
export function processTerminal(): Terminal {
  const interrupted = new AbortController();
  // The second Ctrl-C ends the program at once.
  process.once('SIGINT', () => interrupted.abort());
  const { stdin, stdout, stderr, env } = process;
  return {
    ...{ stdin, stdout, stderr, env },
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
  };
}

async function runHere(program: string, args: readonly string[]): Promise<number> {
  const { spawn } = await import('node:child_process');
  // Ctrl-C in the terminal reaches the child as well, which decides what it means.
  const ignore = () => undefined;
  process.on('SIGINT', ignore);
  try {
    return await new Promise((resolve, reject) => {
      const child = spawn(program, args, { stdio: 'inherit' });
      child.once('error', reject);
      child.once('exit', (code) => resolve(code ?? 1));
    });
  } finally {
    process.off('SIGINT', ignore);
  }
}
