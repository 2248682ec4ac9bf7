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

it('a program that has ended is told of with its refusal, or with the end of its log', async () => {
  const ended = (name: string, source: string) => {
    const script = join(folder, `${name}.mjs`);
    writeFileSync(script, source);
    return Daemon.start('the agent', script, [], {}, join(folder, `${name}.log`));
  };
  const refusing = ended(
    'refuses',
    `process.stderr.write('{"msg":"before"}\\ngpurent-agent: the reason\\n{"msg":"after"}\\n'); process.exitCode = 1;`,
  );
  await expect(refusing.untilEnded()).rejects.toThrow('the agent has ended: gpurent-agent: the reason');
  const wait = eventually('the agent to connect', () => refusing.requireRunning());
  await expect(wait).rejects.toMatchObject({ cause: { message: 'the agent has ended: gpurent-agent: the reason' } });
  // Node writes its version last.
  const failing = ended('fails', `throw new Error('nobody has expected this');`);
  await expect(failing.firstLine()).rejects.toThrow(
    /^the agent ended before it was ready: [^]*Error: nobody has expected this\n {4}at [^]*Node\.js v/,
  );
});

it('nothing is built while tests run from what is built', () => {
  const build = 'source scripts/lib/setup.sh; npm() { echo "npm $*"; }; build';
  expect(bash(build, { TEST_IS_BUILT: '' }).stdout).toBe('npm run --silent build\n');
  expect(bash(build, { TEST_IS_BUILT: '1' }).stdout).toBe('');
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
