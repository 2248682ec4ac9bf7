import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
    source scripts/lib/processor.sh
    source scripts/lib/phases.sh
    phases_dir=${folder}/phases
    start_phases
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

it('a lane that fails lets the others end, and says what it printed', async () => {
  const script = start(`
    fails() { phase broken sh -c 'echo the reason; exit 3'; echo 'the lane went on' >>${folder}/told; }
    waits() { after other; echo 'the other lane ended' >>${folder}/told; }
    other() { until [ -e ${folder}/phases/broken.log ]; do sleep 0.05; done; phase other true; }
    run_lanes fails waits other
    echo "lanes_failed=$lanes_failed $(failed_phases)" >>${folder}/told
    say_failures 2>>${folder}/told`);
  expect(await once(script, 'exit')).toEqual([0, null]);
  expect(readFileSync(join(folder, 'told'), 'utf8')).toBe(
    'the other lane ended\nlanes_failed=1 broken\n---- broken ----\nthe reason\n',
  );
});

it('tests that fail let their lane go on', async () => {
  const script = start(`
    goes_on() { tests red false; tests green true; }
    run_lanes goes_on
    awk '{ print $1, $4 }' ${folder}/phases/times >${folder}/told`);
  expect(await once(script, 'exit')).toEqual([0, null]);
  expect(readFileSync(join(folder, 'told'), 'utf8')).toBe('red 1\ngreen 0\n');
});

it('a lane that waits for what has failed ends, and all lanes with it', async () => {
  const script = start(`
    fails() { phase broken false; phase later true; }
    waits() { after later; phase never true; }
    waits_for_that() { after never; }
    run_lanes fails waits waits_for_that
    awk '{ print $1, $4 }' ${folder}/phases/times >${folder}/told
    echo "lanes_failed=$lanes_failed" >>${folder}/told`);
  expect(await once(script, 'exit')).toEqual([0, null]);
  expect(readFileSync(join(folder, 'told'), 'utf8')).toBe('broken 1\nlanes_failed=1\n');
});

it.runIf(process.getuid?.() === 0)(
  'what a killed program has left mounted in a folder of the run is not removed with it',
  () => {
    const machine = join(folder, 'machine');
    mkdirSync(machine);
    writeFileSync(join(machine, 'device'), 'of this machine');
    // In a mount namespace of its own: nothing of it stays.
    const script = `
    source scripts/lib/setup.sh
    mkdir -p ${folder}/tree/dev ${folder}/tree/etc
    touch ${folder}/tree/dev/null
    mount --bind ${machine} ${folder}/tree/etc
    mount --bind ${machine}/device ${folder}/tree/dev/null
    remove_tree ${folder}/tree`;
    execFileSync('unshare', ['--mount', 'bash', '-euc', script], { cwd: root });
    expect(existsSync(join(folder, 'tree'))).toBe(false);
    expect(readFileSync(join(machine, 'device'), 'utf8')).toBe('of this machine');
  },
);
