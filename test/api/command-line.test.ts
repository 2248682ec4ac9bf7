import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { Store } from '../../control-plane/store/store.js';
import { systemClock } from '../../shared/clock.js';

const PROGRAM = fileURLToPath(new URL('../../dist/bundle/control-plane.js', import.meta.url));

let folder: string;
let database: string;
let running: Store | undefined;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-command-line-'));
  database = join(folder, 'gpurent.db');
  expect(run('migrate')).toMatchObject({ status: 0 });
});
afterEach(() => {
  running?.close();
  running = undefined;
});
afterAll(() => rmSync(folder, { recursive: true }));

function run(...args: string[]): { status: number | null; lines: string[] } {
  const env = { ...process.env, GPURENT_DATABASE: database, GPURENT_LOG_LEVEL: 'silent' };
  const { status, stderr } = spawnSync(process.execPath, [PROGRAM, ...args], { env, encoding: 'utf8' });
  return { status, lines: stderr.split('\n').filter(Boolean) };
}

it.each([
  ['backup into a folder that is none', ['backup', 'none/copy.db'], 'there is no folder'],
  ['backup beneath a file', ['backup', 'gpurent.db/copy.db'], 'gpurent.db is not a folder'],
  ['restore of nothing', ['restore', 'none.db'], 'there is no file'],
  ['restore of a folder', ['restore', '.'], 'is not a file'],
])('%s is refused in one line', (_name, [command = '', name = ''], saying) => {
  const { status, lines } = run(command, join(folder, name));
  expect(lines).toEqual([expect.stringMatching(/^gpurent-control-plane: /)]);
  expect(lines[0]).toContain(saying);
  expect(status).toBe(1);
});

it.each([['rotate-key'], ['restore']])('%s says in one line that the daemon is to be stopped first', (command) => {
  expect(run('backup', join(folder, `${command}.db`)).status).toBe(0);
  running = new Store(database, systemClock);
  const { status, lines } = run(command, ...(command === 'restore' ? [join(folder, `${command}.db`)] : []));
  expect(lines).toEqual([expect.stringMatching(/^gpurent-control-plane: another control plane .*: stop it first/)]);
  expect(status).toBe(1);
});
