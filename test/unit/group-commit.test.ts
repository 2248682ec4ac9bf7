import BetterSqlite3 from 'better-sqlite3';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { WorkerName } from '../../control-plane/domain/worker-name.js';
import { Store, StoreUnavailable, type Tx } from '../../control-plane/store/store.js';
import { query } from '../../control-plane/store/sql.js';
import { ManualClock } from '../harness/manual-clock.js';

let folder: string;
let file: string;
let store: Store;
let nudged: WorkerName[];
/** What the store has put off to the end of the turn. */
let deferred: (() => void)[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-group-'));
  file = join(folder, 'gpurent.db');
  [nudged, deferred] = [[], []];
  store = open();
});
afterEach(() => {
  store.close();
  rmSync(folder, { recursive: true });
});

function open(): Store {
  const onNudge = (worker: WorkerName) => nudged.push(worker);
  return new Store(file, new ManualClock(), { onNudge, deferCommit: (run) => deferred.push(run) });
}

function endTurn(): void {
  for (const run of deferred.splice(0)) run();
}

function write(key: string): void {
  store.transact((tx) => {
    insert(tx, key);
    tx.nudge('dispatch');
  });
}

function insert(tx: Tx, key: string): void {
  tx.run(query.insertInto('meta').values({ key, value: key }));
}

/** What another process sees: what is durable. */
function durable(): string[] {
  const other = new BetterSqlite3(file, { readonly: true });
  const rows = other
    .prepare<[], { key: string }>("SELECT key FROM meta WHERE key IN ('a', 'b', 'c') ORDER BY key")
    .all();
  other.close();
  return rows.map(({ key }) => key);
}

function seen(): string[] {
  const known = query.selectFrom('meta').select('key').where('key', 'in', ['a', 'b', 'c']).orderBy('key');
  return store.transact((tx) => tx.all(known)).map(({ key }) => key);
}

/** Makes the next commit fail, as a disk does. */
function breakCommit(): void {
  const group = Reflect.get(store, 'group') as { statements: { commit: { run(): void } } };
  const { commit } = group.statements;
  const fail = () => {
    group.statements.commit = commit;
    throw new BetterSqlite3.SqliteError('disk I/O error', 'SQLITE_IOERR');
  };
  group.statements.commit = { run: fail };
}

it('use cases of one turn are committed together, and only then is anybody woken or told', async () => {
  const told: string[] = [];
  store.join(() => {
    write('a');
    write('b');
    expect(seen()).toEqual(['a', 'b']);
  });
  store.whenDurable(() => told.push('both'));
  const promise = store.durable();
  expect({ durable: durable(), nudged, told }).toEqual({ durable: [], nudged: [], told: [] });
  endTurn();
  expect({ durable: durable(), nudged, told }).toEqual({
    durable: ['a', 'b'],
    nudged: ['dispatch', 'dispatch'],
    told: ['both'],
  });
  await promise;
  expect(store.durable()).toBeUndefined();
});

it('one that is refused is undone alone', () => {
  store.join(() => {
    write('a');
    expect(() =>
      store.transact((tx) => {
        insert(tx, 'b');
        throw new Error('refused');
      }),
    ).toThrow('refused');
    write('c');
  });
  endTurn();
  expect(durable()).toEqual(['a', 'c']);
});

it('a use case outside of the group sees nothing uncommitted, and is durable when it ends', () => {
  store.join(() => write('a'));
  store.transact((tx) => {
    expect(durable()).toEqual(['a']);
    insert(tx, 'b');
  });
  expect(durable()).toEqual(['a', 'b']);
  endTurn();
  expect(durable()).toEqual(['a', 'b']);
});

it('a commit that fails loses the whole group: everybody is told so, nobody is woken, nothing of it is remembered', async () => {
  const told: unknown[] = [];
  let forgotten = 0;
  store.onUnknownChange(() => (forgotten += 1));
  store.join(() => {
    write('a');
    write('b');
  });
  for (let waiting = 0; waiting < 2; waiting++)
    store.whenDurable(
      () => told.push('done'),
      (error) => told.push(error),
    );
  const promise = store.durable();
  breakCommit();
  endTurn();
  await expect(promise).rejects.toThrow(StoreUnavailable);
  expect(told).toEqual([expect.any(StoreUnavailable), expect.any(StoreUnavailable)]);
  expect({ durable: durable(), seen: seen(), nudged, forgotten }).toEqual({
    durable: [],
    seen: [],
    nudged: [],
    forgotten: 1,
  });
  // The next group is another one.
  store.join(() => write('c'));
  endTurn();
  expect(durable()).toEqual(['c']);
});

it('of a group that was not committed nothing is there after a kill', () => {
  store.join(() => write('a'));
  store.close();
  store = open();
  expect(seen()).toEqual([]);
});
