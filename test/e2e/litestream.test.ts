import BetterSqlite3 from 'better-sqlite3';
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { beginTerm, isSuperseded } from '../../control-plane/services/connections/term.js';
import { restore } from '../../control-plane/store/backup.js';
import { query } from '../../control-plane/store/sql.js';
import { Store } from '../../control-plane/store/store.js';
import { systemClock } from '../../shared/clock.js';
import { randomIds } from '../../shared/ids.js';
import { eventually } from '../../scripts/eventually.js';

/** Where the scripts have put it. */
const PROGRAM = process.env['TEST_LITESTREAM'] ?? 'litestream';

let folder: string;
let settings: string;
let litestream: ChildProcess | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-test-'));
  settings = join(folder, 'litestream.yml');
});
afterEach(async () => {
  await end();
  rmSync(folder, { recursive: true });
});

function begin(file: string): void {
  const replica = `{ path: ${folder}/replica, sync-interval: 20ms }`;
  writeFileSync(settings, `dbs: [{ path: ${file}, monitor-interval: 20ms, replicas: [${replica}] }]\n`);
  litestream = spawn(PROGRAM, ['replicate', '-config', settings], { stdio: 'ignore' });
}
async function end(): Promise<void> {
  if (litestream?.exitCode === null && litestream.signalCode === null) {
    litestream.kill('SIGKILL');
    await once(litestream, 'exit');
  }
}

/** Returns the newest copy of the database that Litestream has made. Throws while there is none. */
function copyOf(file: string): string {
  const copy = join(folder, 'copy.db');
  for (const suffix of ['', '-wal', '-shm']) rmSync(copy + suffix, { force: true });
  execFileSync(PROGRAM, ['restore', '-config', settings, '-o', copy, file], { stdio: 'ignore' });
  return copy;
}

function noted(file: string): unknown {
  const database = new BetterSqlite3(file);
  try {
    return database.prepare("SELECT value FROM meta WHERE key = 'note'").pluck().get();
  } finally {
    database.close();
  }
}

it('what Litestream has copied is restored, at an epoch above all that hosts have seen', async () => {
  const file = join(folder, 'gpurent.db');
  const store = new Store(file, systemClock, { litestream: true });
  const term = beginTerm(store, randomIds);
  begin(file);
  let copy = '';
  try {
    const note = query.insertInto('meta').values({ key: 'note', value: 'the last commit' });
    store.transact((tx) => tx.run(note));
    await eventually('Litestream to have copied the last commit', () => {
      try {
        copy = copyOf(file);
      } catch {
        return false;
      }
      return noted(copy) === 'the last commit';
    });
    await end();
  } finally {
    store.close();
  }

  const restored = join(folder, 'restored.db');
  restore(copy, restored, systemClock.now());
  const termOf = (at: string) => {
    const opened = new Store(at, systemClock);
    try {
      return beginTerm(opened, randomIds);
    } finally {
      opened.close();
    }
  };
  expect(noted(restored)).toBe('the last commit');
  expect(isSuperseded(term, termOf(restored))).toBe(true);
  expect(isSuperseded(termOf(restored), termOf(copy))).toBe(false);
});
