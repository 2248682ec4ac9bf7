import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough, Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { main } from '../../client/cli/main.js';
import type { Terminal } from '../../client/cli/terminal/terminal.js';
import { statusIs, type Renter } from './control-plane.js';
import { memoryFolder } from './memory-folder.js';

export interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  input?: string;
  env?: Record<string, string>;
  columns?: number;
  /** Aborts as Ctrl-C does. */
  interrupt?: AbortController;
  /** What another program answers: its exit code. */
  program?: Terminal['run'];
  /** What another program prints that is only read. */
  read?: Terminal['read'];
  /** Is told each wait, in milliseconds. */
  onWait?: (ms: number) => void;
}

/** As fast as the clock of a test: nothing waits for longer than this. */
const LONGEST_WAIT_MS = 20;

/** A person with a home of their own, who runs gpurent in this process. */
export class CommandLine {
  readonly home = memoryFolder('gpurent-home-');
  /** Every program that was run, with its arguments. */
  readonly programs: string[][] = [];

  constructor(
    private readonly env: Record<string, string> = {},
    private readonly now: () => number = Date.now,
  ) {
    mkdirSync(join(this.home, '.ssh'));
  }

  remove(): void {
    rmSync(this.home, { recursive: true });
  }

  /** Runs `gpurent` with these arguments. */
  async run(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
    const { running, output } = this.begin(args, options);
    const code = await running;
    return { code, stdout: output.stdout, stderr: output.stderr };
  }

  /** Begins to run it; `output` grows meanwhile. */
  begin(args: readonly string[], { input, env, columns, interrupt, program, read, onWait }: RunOptions = {}) {
    const output = { stdout: '', stderr: '' };
    const into = (name: 'stdout' | 'stderr') =>
      new Writable({
        write: (chunk: Buffer, _encoding, done) => {
          output[name] += chunk.toString();
          done();
        },
      });
    const interrupted = (interrupt ?? new AbortController()).signal;
    const terminal: Terminal = {
      stdin: input === undefined ? new PassThrough() : Readable.from([input]),
      stdout: into('stdout'),
      stderr: into('stderr'),
      env: { HOME: this.home, ...this.env, ...env },
      columns,
      showsProgress: false,
      isInteractive: false,
      now: this.now,
      wait: async (ms, signal = interrupted) => {
        onWait?.(ms);
        await sleep(Math.min(ms, LONGEST_WAIT_MS), undefined, { signal });
      },
      interrupted,
      run: async (name, programArgs) => {
        this.programs.push([name, ...programArgs]);
        return program ? program(name, programArgs) : 0;
      },
      read: async (name, readArgs) => (read ? read(name, readArgs) : ''),
    };
    return { running: main(args, terminal), output };
  }
}

/** Frees the GPUs of a renter for the next test. */
export async function destroyAll({ api }: Renter): Promise<void> {
  const { items } = await api.get<{ items: { id: string }[] }>('/v1/instances');
  for (const { id } of items) await api.delete(`/v1/instances/${id}`);
  for (const { id } of items) await statusIs(api, id, 'destroyed');
}
