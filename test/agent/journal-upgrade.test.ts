import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import BetterSqlite3 from 'better-sqlite3';
import { Journal } from '../../agent/journal/journal.js';
import { RELEASES, leftBy } from '../harness/releases.js';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-journal-'));
  file = join(folder, 'journal.db');
});
afterEach(() => rmSync(folder, { recursive: true }));

it.each(RELEASES)('a journal of release %s is opened, and says what it said', (release) => {
  copyFileSync(leftBy(release, 'journal.db'), file);
  for (let time = 0; time < 2; time++) {
    const journal = new Journal(file);
    expect(journal.meta('boot_id')).toBe('a-boot');
    expect(journal.instances().map(({ instanceId, sequence, desired }) => [instanceId, sequence, desired])).toEqual([
      ['a', 1, 'ended'],
      ['b', 3, 'stopped'],
      ['c', 2, 'running'],
    ]);
    expect(journal.unacknowledgedResults().map(({ commandId }) => commandId)).toEqual(['unacknowledged']);
    expect(journal.unacknowledgedReports()).toMatchObject([{ instanceId: 'a', note: 'ended' }]);
    expect(journal.command('cut-short')).toEqual({ state: 'begun', runBefore: 1_767_225_600_000, crashes: 0 });
    journal.close();
  }
});

it('one of a later release is refused, and left as it is', () => {
  copyFileSync(leftBy('0.1.0', 'journal.db'), file);
  const database = new BetterSqlite3(file);
  database.pragma('user_version = 99');
  database.close();
  expect(() => new Journal(file)).toThrow(/a newer release has written it/);
});
