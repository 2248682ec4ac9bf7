import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventsAfter, expiredTo, newestNumber } from '../../control-plane/services/events/read.js';
import { recordEvent } from '../../control-plane/services/events/record.js';
import { query } from '../../control-plane/store/sql.js';
import { Store } from '../../control-plane/store/store.js';
import { ManualClock } from '../harness/manual-clock.js';

let folder: string;
let store: Store;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-events-'));
  store = new Store(join(folder, 'gpurent.db'), new ManualClock());
});
afterEach(() => {
  store.close();
  rmSync(folder, { recursive: true });
});

const tell = (stream: string) =>
  store.transact((tx) => recordEvent(tx, stream, 'billing.payments_frozen', `orgs/${stream}`, {}));
const numbers = (stream: string) => store.transact((tx) => eventsAfter(tx, stream, 0).map(({ number }) => number));

it('each stream has numbers of its own, and what is rolled back takes none', () => {
  for (const stream of ['a', 'a', 'b']) tell(stream);
  expect(() =>
    store.transact((tx) => {
      recordEvent(tx, 'a', 'billing.payments_frozen', 'orgs/a', {});
      throw new Error('refused');
    }),
  ).toThrow('refused');
  tell('a');
  expect([numbers('a'), numbers('b')]).toEqual([[1, 2, 3], [1]]);
});

it('of more than a million, the oldest goes with each new one, and readers know from where on nothing is missing', () => {
  for (let count = 0; count < 3; count++) tell('a');
  store.transact((tx) => {
    const last = query.updateTable('events').set({ number: 1_000_000 }).where('stream', '=', 'a');
    tx.run(last.where('number', '=', 3));
  });
  tell('a');
  expect(numbers('a')).toEqual([2, 1_000_000, 1_000_001]);
  expect(store.transact((tx) => [expiredTo(tx, 'a'), newestNumber(tx, 'a')])).toEqual([1, 1_000_001]);
});
