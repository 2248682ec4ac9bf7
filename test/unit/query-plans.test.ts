import BetterSqlite3 from 'better-sqlite3';
import { afterAll, expect, it } from 'vitest';
import { migrations } from '../../control-plane/store/migrations/index.js';
import { faultOf } from '../harness/query-plans.js';

const database = new BetterSqlite3(':memory:');
for (const { sql } of migrations) database.exec(sql);
afterAll(() => void database.close());

it.each([
  ["SELECT * FROM instances WHERE label = 'x'", 'SCAN instances'],
  ['SELECT * FROM instances WHERE organization_id = ?', 'unbounded: SEARCH instances'],
  ["SELECT * FROM instances WHERE status = 'stopped'", 'SCAN instances'],
  ['SELECT * FROM transactions WHERE organization_id = ? ORDER BY created_at LIMIT 10', 'unbounded'],
  ["SELECT * FROM instances WHERE label = 'x' LIMIT 1", 'SCAN instances'],
  ['SELECT * FROM commands WHERE machine_id = ?', 'unbounded: SEARCH commands'],
  ['SELECT * FROM "instances" as "one" WHERE organization_id = ?', 'unbounded: SEARCH one'],
  ["UPDATE instances SET label = '' WHERE machine_id = ?", 'SCAN instances'],
])('%s costs more with age', (sql, fault) => {
  expect(faultOf(database, sql)).toContain(fault);
});

it.each([
  'SELECT * FROM instances WHERE id = ?',
  "SELECT * FROM instances WHERE organization_id = ? AND status <> 'destroyed'",
  'SELECT * FROM transactions WHERE organization_id = ? ORDER BY rowid DESC LIMIT 10',
  "SELECT * FROM commands WHERE machine_id = ? AND state = 'open'",
])('%s does not', (sql) => {
  expect(faultOf(database, sql)).toBe(undefined);
});
