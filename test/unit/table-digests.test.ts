import BetterSqlite3 from 'better-sqlite3';
import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { memoryFolder } from '../harness/memory-folder.js';
import { TableDigests } from '../harness/table-digests.js';

/** A database with one row of each table, and its digests. */
function world() {
  const folder = memoryFolder('gpurent-digests-');
  const file = join(folder, 'some.db');
  const database = new BetterSqlite3(file);
  database.pragma('journal_mode = WAL');
  database.exec('CREATE TABLE things (name, last_used_at); CREATE TABLE others (name)');
  database.exec("INSERT INTO things VALUES ('a', 1); INSERT INTO others VALUES ('b')");
  const digests = new TableDigests(file);
  onTestFinished(() => {
    digests.close();
    database.close();
    rmSync(folder, { recursive: true });
  });
  return { file, database, digests };
}

it('the digests stay the same ones until something is committed', () => {
  const { database, digests } = world();
  const before = digests.read();
  expect(digests.read()).toBe(before);
  database.exec("BEGIN; UPDATE things SET name = 'b'");
  expect(digests.read()).toBe(before);
  database.exec('ROLLBACK');
  expect(digests.read()).toBe(before);
  database.exec("UPDATE things SET name = 'b'");
  const { things, others } = digests.read();
  expect(things).not.toBe(before['things']);
  expect(others).toBe(before['others']);
  database.exec("UPDATE things SET name = 'a'");
  expect(digests.read()).toEqual(before);
});

it('a use of a credential changes no digest', () => {
  const { database, digests } = world();
  const before = digests.read();
  database.exec('UPDATE things SET last_used_at = 2');
  expect(digests.read()).toEqual(before);
});

it('a file that was replaced meanwhile is read anew', () => {
  const { file, database, digests } = world();
  const before = digests.read();
  database.exec('DELETE FROM others');
  database.exec(`VACUUM INTO '${file}.copy'`);
  database.exec("INSERT INTO others VALUES ('b')");
  expect(digests.read()).toEqual(before);
  digests.close();
  database.close();
  renameSync(`${file}.copy`, file);
  const { things, others } = digests.read();
  expect(things).toBe(before['things']);
  expect(others).toMatch(/^0 rows/);
});
