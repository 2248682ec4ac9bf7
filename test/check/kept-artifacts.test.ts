import { execFileSync, spawnSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const NINE_DAYS_MS = 9 * 86_400_000;
let folder: string;
let cache: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-kept-'));
  cache = join(folder, 'cache');
  writeFileSync(join(folder, 'source'), 'one');
});
afterEach(() => rmSync(folder, { recursive: true }));

function bash(script: string): string {
  const { status, stdout, stderr } = spawnSync('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, GPURENT_CACHE: cache },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

/** Keeps what is made of the source; answers what it holds, and how often it has been made. */
function keep(kind: 'file' | 'folder' = 'file'): { content: string; made: number } {
  const make = kind === 'file' ? `cp ${folder}/source "$1"` : `mkdir "$1"; cp ${folder}/source "$1/inside"`;
  const kept = bash(`
    source scripts/lib/setup.sh; source scripts/lib/artifacts.sh
    make_it() { echo made >>${folder}/made; ${make}; }
    keep thing make_it ${folder}/source 2>/dev/null
    echo -n "$kept"`);
  const content = readFileSync(kind === 'file' ? kept : join(kept, 'inside'), 'utf8');
  return { content, made: readFileSync(join(folder, 'made'), 'utf8').trim().split('\n').length };
}
const artifact = () => join(cache, readdirSync(cache).find((name) => /^thing-\w+$/.test(name)) ?? '');

it.each(['file', 'folder'] as const)('a %s is made once, and again when a source has changed', (kind) => {
  expect(keep(kind)).toEqual({ content: 'one', made: 1 });
  expect(keep(kind)).toEqual({ content: 'one', made: 1 });
  writeFileSync(join(folder, 'source'), 'two');
  expect(keep(kind)).toEqual({ content: 'two', made: 2 });
});

it.each(['file', 'folder'] as const)('a %s that is not what was made is made again', (kind) => {
  keep(kind);
  appendFileSync(kind === 'file' ? artifact() : join(artifact(), 'inside'), ' damaged');
  expect(keep(kind)).toEqual({ content: 'one', made: 2 });
  rmSync(`${artifact()}.sum`);
  expect(keep(kind)).toEqual({ content: 'one', made: 3 });
});

it('what was made more than a week ago is made again, and others of that age are dropped', () => {
  keep();
  const other = join(cache, 'other-0123456789abcdef');
  writeFileSync(other, '');
  const then = new Date(Date.now() - NINE_DAYS_MS);
  for (const file of [other, artifact(), `${artifact()}.sum`]) utimesSync(file, then, then);
  expect(keep()).toEqual({ content: 'one', made: 2 });
  expect(existsSync(other)).toBe(false);
});

it('a make that fails leaves nothing that looks made', () => {
  const failing = `
    source scripts/lib/setup.sh; source scripts/lib/artifacts.sh
    make_it() { echo half >"$1"; return 1; }
    keep thing make_it ${folder}/source`;
  expect(() => bash(failing)).toThrow('making thing');
  expect(keep()).toEqual({ content: 'one', made: 1 });
});

it('a release never takes what was kept, unless tests ask for that', () => {
  const release = readFileSync(join(root, 'scripts/release'), 'utf8');
  expect(release).not.toMatch(/\bkeep |install_kept_packages|compile_kept_packages|make_kept_guest_tools/);
  const callers = execFileSync('git', ['grep', '-lE', '(scripts/release|make_release) .*--kept', 'scripts'], {
    cwd: root,
    encoding: 'utf8',
  });
  for (const caller of callers.trim().split('\n')) expect(caller).toMatch(/^scripts\/(release|lib\/test-\w+\.sh)$/);
});

/** A repository with the files that decide a result; answers what is not to be run in it. */
function notRun(act = ''): string {
  const checkout = join(folder, 'checkout');
  if (!existsSync(checkout)) {
    mkdirSync(join(checkout, 'agent'), { recursive: true });
    mkdirSync(join(checkout, 'console'));
    execFileSync('git', ['init', '-q'], { cwd: checkout });
    writeFileSync(join(checkout, 'agent/a.ts'), 'one');
    writeFileSync(join(checkout, 'console/c.ts'), 'one');
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-q', '--allow-empty', '-m', 'a'], {
      cwd: checkout,
    });
  }
  return bash(`
    source scripts/lib/setup.sh; source scripts/lib/processor.sh; source scripts/lib/artifacts.sh
    source scripts/lib/phases.sh; source scripts/lib/results.sh
    phases_dir=${folder}/phases; mkdir -p $phases_dir
    cd ${checkout}
    find_kept_results
    ${act}
    echo -n $not_run`);
}

it('a result is kept where it has passed with the same inputs, changed files included', () => {
  expect(notRun('keepable_tests vm true 2>/dev/null; keepable_tests sweeps false 2>/dev/null')).toBe('');
  expect(notRun()).toBe('vm');
  writeFileSync(join(folder, 'checkout/console/c.ts'), 'two');
  expect(notRun()).toBe('vm');
  writeFileSync(join(folder, 'checkout/agent/a.ts'), 'two');
  expect(notRun()).toBe('');
  writeFileSync(join(folder, 'checkout/agent/a.ts'), 'one');
  writeFileSync(join(folder, 'checkout/agent/new.ts'), 'one');
  expect(notRun()).toBe('');
});

it('what is kept is not run', () => {
  notRun('keepable_tests vm true 2>/dev/null');
  notRun(`keepable_tests vm touch ${folder}/ran; keepable_tests machine touch ${folder}/ran-too 2>/dev/null`);
  expect(existsSync(join(folder, 'ran'))).toBe(false);
  expect(existsSync(join(folder, 'ran-too'))).toBe(true);
  expect(readFileSync(join(folder, 'phases/not-run'), 'utf8')).toMatch(
    /^vm: passed with the same inputs at \w+ on \d{4}-\d\d-\d\d$/m,
  );
});

it('names what exists in the inputs of what may be left out', () => {
  const inputs = bash(
    `source scripts/lib/setup.sh; source scripts/lib/results.sh; for each in $keepable; do inputs_of $each; done`,
  );
  for (const path of inputs.trim().split(/\s+/)) expect(existsSync(join(root, path)), path).toBe(true);
});
