import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Benchmark } from './benchmark.js';

const DIST = fileURLToPath(new URL('../../', import.meta.url));
const PROGRAM = join(DIST, 'client/cli/bin.js');
const EMPTY = "import { Command } from 'commander';\nnew Command('empty').parse();\n";
const RUNS = 21;

/** Measures how long `gpurent --help` takes, beside a program of commander that has no command. The ratio is to be at most 1.5. */
export const commandLine: Benchmark = async () => {
  // Within dist, so that it finds the same commander.
  const folder = mkdtempSync(join(DIST, 'empty-'));
  try {
    const empty = join(folder, 'empty.mjs');
    writeFileSync(empty, EMPTY);
    const times = { ours: [] as number[], empty: [] as number[] };
    for (let run = 0; run < RUNS; run += 1) {
      times.ours.push(timeOf(PROGRAM));
      times.empty.push(timeOf(empty));
    }
    const [ours, bare] = [medianOf(times.ours), medianOf(times.empty)];
    return {
      'gpurent --help': ours,
      'empty program of commander --help': bare,
      ratio: Number((ours / bare).toFixed(2)),
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
};

function timeOf(program: string): number {
  const begun = performance.now();
  const { status } = spawnSync(process.execPath, [program, '--help'], { stdio: 'ignore' });
  if (status !== 0) throw new Error(`${program} has ended with ${status ?? 'a signal'}`);
  return performance.now() - begun;
}

function medianOf(times: number[]): number {
  return Number(([...times].sort((one, other) => one - other)[Math.floor(times.length / 2)] ?? NaN).toFixed(1));
}
