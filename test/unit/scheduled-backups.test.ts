import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HOUR_MS } from '../../shared/time.js';
import { restore } from '../../control-plane/store/backup.js';
import { ScheduledBackups } from '../../control-plane/store/scheduled-backups.js';
import { query } from '../../control-plane/store/sql.js';
import { Store } from '../../control-plane/store/store.js';
import { silentLogger } from '../../shared/logger.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import { asNobody } from '../harness/as-nobody.js';
import { ManualClock } from '../harness/manual-clock.js';

let folder: string;
let copies: string;
let clock: ManualClock;
let store: Store;
let backups: ScheduledBackups;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-test-'));
  copies = join(folder, 'copies');
  clock = new ManualClock();
  store = new Store(join(folder, 'gpurent.db'), clock);
  backups = make();
});
afterEach(async () => {
  await backups.stop();
  store.close();
  rmSync(folder, { recursive: true, force: true });
});

const make = (from: Pick<Store, 'backUp'> = store, room?: { isFullFor: () => boolean }) =>
  new ScheduledBackups(from, { folder: copies, everyMs: 24 * HOUR_MS, keep: 2 }, clock, silentLogger, room);
const made = () => readdirSync(copies).filter((name) => name.endsWith('.db'));
const note = (value: string) =>
  store.transact((tx) => {
    tx.run(query.deleteFrom('meta').where('key', '=', 'note'));
    tx.run(query.insertInto('meta').values({ key: 'note', value }));
  });

/** Lets time pass until there is another copy than before; answers all. */
async function nextCopy(afterMs = 0): Promise<string[]> {
  const newest = () => (existsSync(copies) ? made().at(-1) : undefined);
  const before = newest();
  clock.advance(afterMs);
  await advanceUntil('a copy', { clock, stepMs: 60_000 }, () => newest() !== before && newest());
  return made();
}

it('copies at once, then every so often, and keeps the newest', async () => {
  note('first');
  backups.start();
  const [first = ''] = await nextCopy();
  expect(statSync(join(copies, first)).mode & 0o777).toBe(0o600);
  expect(statSync(copies).mode & 0o777).toBe(0o700);
  note('second');
  const [, second = ''] = await nextCopy(24 * HOUR_MS);
  await nextCopy(24 * HOUR_MS);
  await eventually('the oldest to go', () => made().length === 2 && !made().includes(first));
  expect(made()[0]).toBe(second);
  const restored = join(folder, 'restored.db');
  restore(join(copies, second), restored, clock.now());
  const other = new Store(restored, clock);
  const find = query.selectFrom('meta').select('value').where('key', '=', 'note');
  expect(other.transact((tx) => tx.get(find))).toEqual({ value: 'second' });
  other.close();
});

it('goes by the copies that are there, also after a restart, and removes nothing else', async () => {
  backups.start();
  const before = await nextCopy();
  await backups.stop();
  const [mine, unfinished] = [join(copies, 'mine.db'), join(copies, 'gpurent-2026-01-01T00-00-00-000Z.db.part')];
  for (const file of [mine, unfinished]) writeFileSync(file, '');
  backups = make();
  backups.start();
  for (let minutes = 0; minutes < 60; minutes++) {
    clock.advance(60_000);
    await Promise.resolve();
  }
  expect(made()).toEqual([...before, 'mine.db']);
  expect([existsSync(mine), existsSync(unfinished)]).toEqual([true, false]);
});

it('tries again when a copy has failed, and leaves nothing of it', async () => {
  let tries = 0;
  backups = make({
    backUp: async (to) => {
      writeFileSync(to, 'half of it');
      if (++tries < 3) throw new Error('the disk is full');
    },
  });
  backups.start();
  expect(await nextCopy()).toHaveLength(1);
  expect(tries).toBe(3);
  expect(readdirSync(copies)).toHaveLength(1);
});

it('makes no copy on the disk of the database while that is full, gives up the one that is being made, and makes it later', async () => {
  let isFull = true;
  const begun: string[] = [];
  const backUp = async (to: string, isOver: () => boolean) => {
    begun.push(to);
    if (begun.length === 1) isFull = true;
    if (isOver()) throw new Error('the copy was aborted');
    writeFileSync(to, 'all of it');
  };
  backups = make({ backUp }, { isFullFor: () => isFull });
  backups.start();
  for (let minutes = 0; minutes < 5; minutes++) {
    clock.advance(60_000);
    await Promise.resolve();
  }
  expect(begun).toEqual([]);
  isFull = false;
  await advanceUntil('a copy to begin', { clock, stepMs: 60_000 }, () => begun.length === 1);
  isFull = false;
  expect(await nextCopy()).toHaveLength(1);
  expect(readdirSync(copies)).toHaveLength(1);
});

it('gives a copy up when it is stopped', async () => {
  let began = false;
  backups = make({
    backUp: async (to, isOver) => {
      writeFileSync(to, 'half of it');
      began = true;
      while (!isOver()) await new Promise((resolve) => setImmediate(resolve));
      throw new Error('given up');
    },
  });
  backups.start();
  clock.advance(0);
  await eventually('a copy to begin', () => began);
  await backups.stop();
  expect(readdirSync(copies)).toEqual([]);
});

describe('a folder that cannot be used stops nobody, is overdue at once, and is used once it can be:', () => {
  it.each([
    ['a file', () => writeFileSync(copies, ''), () => rmSync(copies), /copies is not a folder/],
    [
      'one in which nothing may be written',
      () => mkdirSync(copies, { mode: 0o555 }),
      () => chmodSync(copies, 0o777),
      /may not write in .*copies: name a folder/,
    ],
  ])('%s', async (_name, spoil, mend, saying) => {
    chmodSync(folder, 0o755);
    spoil();
    const log: string[] = [];
    const logger = pino(
      { level: 'error' },
      { write: (line) => void log.push((JSON.parse(line) as { msg: string }).msg) },
    );
    backups = new ScheduledBackups(store, { folder: copies, everyMs: 24 * HOUR_MS, keep: 2 }, clock, logger);
    asNobody(() => {
      backups.start();
      expect(backups.overdueMs).toBe(Infinity);
      clock.advance(0);
    });
    await eventually('it to be said', () => log.length > 0);
    expect(log[0]).toMatch(/no backup could be made in .*copies/);
    expect(log[0]).toMatch(saying);
    mend();
    expect(await nextCopy()).toHaveLength(1);
    expect(backups.overdueMs).toBe(0);
  });
});

it('a folder that has vanished is not made anew: its disk may be missing', async () => {
  backups.start();
  await nextCopy();
  rmSync(copies, { recursive: true });
  clock.advance(48 * HOUR_MS);
  expect(existsSync(copies)).toBe(false);
  expect(backups.overdueMs).toBe(Infinity);
});

it.each([
  [Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' }), 'no space is left on its disk'],
  [Object.assign(new Error('ENOSPC: no space'), { code: 'ENOSPC' }), 'no space is left on its disk'],
  [Object.assign(new Error('EROFS: read-only'), { code: 'EROFS' }), 'its disk is read-only'],
])('a copy that fails says why in plain words: %s', async (error, saying) => {
  const log: string[] = [];
  const logger = pino(
    { level: 'error' },
    { write: (line) => void log.push((JSON.parse(line) as { msg: string }).msg) },
  );
  const from = { backUp: () => Promise.reject(error) };
  backups = new ScheduledBackups(from, { folder: copies, everyMs: 24 * HOUR_MS, keep: 2 }, clock, logger);
  backups.start();
  clock.advance(0);
  await eventually('it to be said', () => log.length > 0);
  expect(log[0]).toBe(`no backup could be made in ${copies}: ${saying}`);
});

it('a copy that was never made is overdue from the start on', async () => {
  backups = make({ backUp: () => Promise.reject(new Error('the disk is full')) });
  backups.start();
  clock.advance(2 * HOUR_MS);
  expect(backups.overdueMs).toBe(2 * HOUR_MS);
});

it('says for how long a copy has been overdue', async () => {
  backups.start();
  expect(backups.overdueMs).toBe(0);
  clock.advance(0);
  await eventually('a copy', () => made().length > 0);
  clock.step(24 * HOUR_MS);
  expect(backups.overdueMs).toBe(0);
  clock.step(2 * HOUR_MS);
  expect(backups.overdueMs).toBe(2 * HOUR_MS);
  rmSync(copies, { recursive: true });
  expect(backups.overdueMs).toBe(Infinity);
});
