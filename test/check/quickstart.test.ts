import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Daemon } from '../../scripts/daemon.js';
import { eventually } from '../../scripts/eventually.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const SOMEBODY = 1234;
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-quickstart-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const bash = (script: string, env: Record<string, string> = {}) =>
  spawnSync('bash', ['-euc', script], {
    cwd: root,
    env: { ...process.env, ...env },
    encoding: 'utf8',
    // A bash whose standard input is a socket takes itself for a remote shell, and runs the files of one.
    stdio: ['ignore', 'pipe', 'pipe'],
  });

it('says at once that it needs root, and why', () => {
  const { status, stderr } = bash(`id() { echo ${SOMEBODY}; }; export -f id; scripts/quickstart --once`);
  expect(status).toBe(1);
  // One line, before anything is installed or built.
  expect(stderr).toMatch(/^quickstart needs root: .*docker group.*; run: sudo scripts\/quickstart --once\n$/);
});

it('a program that has ended is told of with its last line', async () => {
  const script = join(folder, 'ends.mjs');
  writeFileSync(
    script,
    `process.stderr.write('{"msg":"before"}\\ngpurent-agent: the reason\\n{"msg":"after"}\\n'); process.exitCode = 1;`,
  );
  const daemon = Daemon.start('the agent', script, [], {}, join(folder, 'log'));
  await expect(daemon.untilEnded()).rejects.toThrow('the agent has ended: gpurent-agent: the reason');
  const wait = eventually('the agent to connect', () => daemon.requireRunning());
  await expect(wait).rejects.toMatchObject({ cause: { message: 'the agent has ended: gpurent-agent: the reason' } });
});

it.runIf(process.getuid?.() === 0)('what sudo has made in a checkout is its user’s again', () => {
  mkdirSync(join(folder, 'node_modules/package'), { recursive: true });
  mkdirSync(join(folder, '.local/docker'), { recursive: true });
  const owners = () =>
    ['node_modules/package', '.local', '.local/docker'].map((path) => statSync(join(folder, path)).uid);
  const giveBack = `source scripts/lib/setup.sh; cd ${folder}; local_dir=${folder}/.local; give_back`;
  const ids = { SUDO_UID: String(SOMEBODY), SUDO_GID: String(SOMEBODY) };
  expect(bash(giveBack, { SUDO_UID: '' })).toMatchObject({ status: 0 });
  expect(owners()).toEqual([0, 0, 0]);
  expect(bash(giveBack, ids)).toMatchObject({ status: 0, stderr: '' });
  // Docker's own folders stay root's.
  expect(owners()).toEqual([SOMEBODY, SOMEBODY, 0]);
});
