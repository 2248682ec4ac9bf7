import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Remembered } from '../../control-plane/store/remembered.js';
import { query } from '../../control-plane/store/sql.js';
import { Store, type Tx } from '../../control-plane/store/store.js';
import { ManualClock } from '../harness/manual-clock.js';

let folder: string;
let store: Store;
let names: Remembered<{ name: string }>;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-remembered-'));
  store = new Store(join(folder, 'gpurent.db'), new ManualClock());
  names = new Remembered(store, 2, (id) => store.transact((tx) => nameOf(tx, id)));
  store.onChange('users', (id) => names.forget(id));
  for (const id of ['a', 'b', 'c']) store.transact((tx) => insert(tx, id));
});
afterEach(() => {
  store.close();
  rmSync(folder, { recursive: true });
});

function insert(tx: Tx, id: string): void {
  const user = { id, email: id, name: id, password_hash: '', is_operator: 0 as const, created_at: 0 };
  tx.run(query.insertInto('users').values(user));
}

function rename(tx: Tx, id: string, name: string): void {
  tx.run(query.updateTable('users').set({ name }).where('id', '=', id));
}

function nameOf(tx: Tx, id: string): { name: string } | undefined {
  return tx.get(query.selectFrom('users').select('name').where('id', '=', id));
}

it('the same object is returned until the row changes, is deleted, or was never there', () => {
  const first = names.of('a');
  expect(names.of('a')).toBe(first);
  store.transact((tx) => rename(tx, 'b', 'other'));
  expect(names.of('a')).toBe(first);
  store.transact((tx) => rename(tx, 'a', 'new'));
  expect(names.of('a')).toEqual({ name: 'new' });
  store.transact((tx) => tx.run(query.deleteFrom('users').where('id', '=', 'a')));
  expect(names.of('a')).toBeUndefined();
  store.transact((tx) => insert(tx, 'a'));
  expect(names.of('a')).toEqual({ name: 'a' });
});

it('nothing is kept of what a use case that has written reads, should it be rolled back', () => {
  expect(names.of('a')).toEqual({ name: 'a' });
  expect(() =>
    store.transact((tx) => {
      rename(tx, 'a', 'never');
      expect(nameOf(tx, 'a')).toEqual({ name: 'never' });
      throw new Error('refused');
    }),
  ).toThrow('refused');
  expect(names.of('a')).toEqual({ name: 'a' });
  expect(names.compare().every(({ remembered, present }) => remembered.name === present?.name)).toBe(true);
});

it('everything is forgotten when rows may have changed in another way', () => {
  const first = names.of('a');
  store.noteUnknownChange();
  expect(names.of('a')).not.toBe(first);
});

it('of more keys than the bound, and of more variants of one, the oldest are forgotten', () => {
  for (const id of ['a', 'b', 'c']) names.of(id);
  expect(names.compare().map(({ key }) => key)).toEqual(['c', 'b']);
  for (let variant = 0; variant < 100; variant++) names.of('a', String(variant));
  expect(names.compare().filter(({ key }) => key === 'a').length).toBeLessThanOrEqual(16);
});
