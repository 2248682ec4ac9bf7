import BetterSqlite3 from 'better-sqlite3';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { beginTerm, isSuperseded } from '../../control-plane/services/connections/term.js';
import { backUp, restore } from '../../control-plane/store/backup.js';
import { query } from '../../control-plane/store/sql.js';
import { Store } from '../../control-plane/store/store.js';
import { SetupError } from '../../shared/coded-error.js';
import { asNobody, lock } from '../harness/as-nobody.js';
import { systemClock } from '../../shared/clock.js';
import { randomIds } from '../../shared/ids.js';

const NOW = Date.parse('2026-02-03T04:05:06.789Z');

let folder: string;
let file: string;
let saved: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-test-'));
  file = join(folder, 'gpurent.db');
  saved = join(folder, 'saved.db');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function withStore<T>(work: (store: Store) => T, at = file): T {
  const store = new Store(at, systemClock);
  try {
    return work(store);
  } finally {
    store.close();
  }
}

const note = (value: string) => (store: Store) =>
  store.transact((tx) => tx.run(query.insertInto('meta').values({ key: 'note', value })));
const noted = (store: Store) =>
  store.transact((tx) => tx.get(query.selectFrom('meta').select('value').where('key', '=', 'note'))?.value);

it('a backup is taken while the store is in use, and brings back what was there then', () => {
  withStore((store) => {
    note('old')(store);
    backUp(file, saved);
    store.transact((tx) => tx.run(query.updateTable('meta').set({ value: 'new' }).where('key', '=', 'note')));
  });
  const { replaced } = restore(saved, file, NOW);
  expect(withStore(noted)).toBe('old');
  expect(replaced).toBe(`${file}.before-2026-02-03T04-05-06-789Z`);
  expect(withStore(noted, replaced ?? '')).toBe('new');
});

it('a restore raises the epoch above every run so far, however often the same backup is restored', () => {
  const begin = () => withStore((store) => beginTerm(store, randomIds));
  const first = begin();
  backUp(file, saved);
  const later = begin();
  expect(isSuperseded(first, later)).toBe(true);
  expect(isSuperseded(later, first)).toBe(false);
  let newest = later;
  for (const now of [NOW, NOW, NOW - 1e12]) {
    restore(saved, file, now);
    const next = begin();
    expect(isSuperseded(newest, next)).toBe(true);
    newest = next;
  }
});

it('two runs on copies of a store are told apart', () => {
  withStore(() => backUp(file, saved));
  const one = withStore((store) => beginTerm(store, randomIds));
  const other = withStore((store) => beginTerm(store, randomIds), saved);
  expect(other.epoch).toBe(one.epoch);
  expect(isSuperseded(one, other)).toBe(true);
  expect(isSuperseded(one, one)).toBe(false);
  expect(isSuperseded(one, { epoch: 0, incarnation: '' })).toBe(false);
});

it('a restore beside a program that reads the database is refused, and loses no commit', () => {
  withStore(note('old'));
  backUp(file, saved);
  const reader = new BetterSqlite3(file);
  reader.prepare('BEGIN').run();
  reader.prepare('SELECT * FROM meta').all();
  withStore((store) =>
    store.transact((tx) => tx.run(query.updateTable('meta').set({ value: 'new' }).where('key', '=', 'note'))),
  );
  expect(() => restore(saved, file, NOW)).toThrow(/another program has .* open, such as Litestream: stop it first/);
  reader.close();
  expect(withStore(noted)).toBe('new');
});

it('whoever may not read or write somewhere is told who, and where', () => {
  withStore(note('mine'));
  backUp(file, saved);
  const shut = join(folder, 'shut');
  mkdirSync(shut);
  lock(shut);
  const closed = join(folder, 'closed');
  mkdirSync(closed, { mode: 0 });
  chmodSync(folder, 0o755);
  for (const path of [file, saved]) chmodSync(path, 0o644);
  const secret = join(folder, 'secret.db');
  writeFileSync(secret, '', { mode: 0o200 });
  const user = asNobody(() => userInfo().username);
  const attempts: [() => unknown, string][] = [
    [() => backUp(file, join(shut, 'copy.db')), `the user ${user} may not write in ${shut}`],
    [() => backUp(file, join(folder, 'none', 'copy.db')), `there is no folder ${folder}/none`],
    [() => backUp(file, join(file, 'copy.db')), `${file} is not a folder`],
    [() => restore(secret, file, NOW), `the user ${user} may not read ${secret}`],
    [() => restore(saved, join(shut, 'gpurent.db'), NOW), `the user ${user} may not write in ${shut}`],
    [() => restore(join(closed, 'a.db'), file, NOW), `the user ${user} may not read ${closed}/a.db: put a copy of`],
    [() => restore(folder, file, NOW), `${folder} is not a file`],
  ];
  for (const [attempt, saying] of attempts) {
    const run = () => asNobody(attempt);
    expect(run, saying).toThrow(SetupError);
    expect(run, saying).toThrow(saying);
  }
  chmodSync(closed, 0o700);
});

it('what is wrong is refused, and changes nothing', () => {
  withStore(note('mine'));
  const text = join(folder, 'text');
  writeFileSync(text, 'not a database at all, but long enough to be looked at');
  const foreign = join(folder, 'foreign.db');
  new BetterSqlite3(foreign).exec('CREATE TABLE a (b)').close();
  const half = join(folder, 'half.db');
  writeFileSync(`${half}.restoring`, '');
  expect(() => new Store(half, systemClock)).toThrow('a restore was interrupted');
  rmSync(`${half}.restoring`);
  const before = readdirSync(folder).sort();
  expect(() => restore(join(folder, 'none'), file, NOW)).toThrow('there is no file');
  expect(() => restore(text, file, NOW)).toThrow('cannot be copied');
  expect(() => restore(foreign, file, NOW)).toThrow('not a gpurent database');
  expect(() => backUp(file, text)).toThrow('exists');
  expect(() => backUp(join(folder, 'none'), saved)).toThrow('there is no database');
  withStore(() =>
    expect(() => restore(file, file, NOW)).toThrow(
      /another control plane is running .*: stop it first, an installed one by "systemctl stop gpurent-control-plane"/,
    ),
  );
  expect(readdirSync(folder).sort()).toEqual(before);
  expect(withStore(noted)).toBe('mine');
});
