import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import BetterSqlite3 from 'better-sqlite3';
import { Journal } from '../../agent/journal/journal.js';

/** As the agent of 0.1.0 wrote it: a finished command, one whose answer is on its way, one that was cut short, and a report. */
const RELEASED = fileURLToPath(new URL('../fixtures/release-0.1.0/journal.db', import.meta.url));

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-journal-'));
  file = join(folder, 'journal.db');
  copyFileSync(RELEASED, file);
});
afterEach(() => rmSync(folder, { recursive: true }));

it('a journal of 0.1.0 is opened, and says what it said', () => {
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
  const database = new BetterSqlite3(file);
  database.pragma('user_version = 99');
  database.close();
  expect(() => new Journal(file)).toThrow(/a newer release has written it/);
});
