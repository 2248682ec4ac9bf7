import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-check-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Programs that the script has started say their process ids here. */
const pids = () => {
  const file = join(folder, 'pids');
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').map(Number) : [];
};
/** One that has ended may stay listed until somebody asks for its exit status. */
const runs = (pid: number) => {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
};
const areGone = () => eventually('its programs to be gone', () => !pids().some(runs));

/** Runs a script with the functions of our own; `works` waits for a program in the foreground, beside one in the background. */
function start(run: string): ChildProcess {
  const note = `>>${folder}/pids`;
  const script = `
    set -euo pipefail
    source scripts/lib/setup.sh
    source scripts/lib/phases.sh
    phases_dir=${folder}/phases
    works() { sleep 600 & echo $! ${note}; bash -c 'echo $$ ${note}; exec sleep 600'; }
    ${run}`;
  return spawn('bash', ['-c', script], { cwd: root, stdio: 'ignore' });
}

async function interrupt(run: string, signal: NodeJS.Signals): Promise<number | null> {
  const script = start(run);
  await eventually('both programs', () => pids().length === 2);
  const ended = once(script, 'exit') as Promise<[number | null]>;
  script.kill(signal);
  const [code] = await ended;
  await areGone();
  return code;
}

it.each(['SIGTERM', 'SIGINT'] as const)('%s ends a script that runs one thing, and all of that', async (signal) => {
  await interrupt('supervise works', signal);
});

it.each([
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const)('%s ends a script that runs lanes, and all of them', async (signal, status) => {
  expect(await interrupt('waits() { after nothing; }; run_lanes "phase long works" waits', signal)).toBe(status);
});

it('a lane that fails ends the others, and the script', async () => {
  const fails = `fails() { until [ -e ${folder}/pids ]; do sleep 0.05; done; phase broken false; }`;
  expect(await once(start(`${fails}; run_lanes works fails`), 'exit')).toEqual([1, null]);
  await areGone();
});
