import BetterSqlite3 from 'better-sqlite3';
import type { Platform } from '../../../control-plane/services/system/platform.js';
import { compileOnce, query } from '../../../control-plane/store/sql.js';
import { DAYS_THAT_DIFFER, INSTANCES_THAT_DIFFER } from '../../harness/charge-days.js';
import type { Reference } from './reference.js';

/** What a store's books say otherwise than the reference; it has one organization. */
export function differencesIn(file: string, reference: Reference): string[] {
  const database = new BetterSqlite3(file, { readonly: true });
  const rows = database
    .prepare<[], { id: string; spend_micro: number; charged: number }>(
      `
    SELECT id, spend_micro, (SELECT coalesce(-sum(amount_micro), 0) FROM transactions WHERE instance_id = instances.id) AS charged
    FROM instances`,
    )
    .all();
  const balance = database.prepare<[], { balance_micro: number }>('SELECT balance_micro FROM organizations').get();
  const days = database
    .prepare<[], { charged: number; days: number; machines: number }>(
      `SELECT (SELECT coalesce(-sum(amount_micro), 0) FROM transactions WHERE kind = 'charge') AS charged,
        (SELECT coalesce(sum(gpu_micro + disk_micro), 0) FROM organization_days) AS days,
        (SELECT coalesce(sum(gpu_micro + disk_micro), 0) FROM machine_days) AS machines`,
    )
    .get();
  const inGroups = [DAYS_THAT_DIFFER, INSTANCES_THAT_DIFFER].flatMap((text) => database.prepare(text).all());
  database.close();
  if (inGroups.length > 0) return inGroups.map((row) => `a sum by day differs: ${JSON.stringify(row)}`);
  if (days?.charged !== days?.days || days?.charged !== days?.machines)
    return [`charged is ${days?.charged}, by the days ${days?.days}, by the days of machines ${days?.machines}`];
  const wrong = rows.flatMap(({ id, spend_micro, charged }) => {
    const expected = reference.spendOf(id);
    const isRight = BigInt(spend_micro) === expected && charged === spend_micro;
    return isRight ? [] : [`${id} has spent ${spend_micro}, by its charges ${charged}, by the reference ${expected}`];
  });
  const isRight = balance !== undefined && BigInt(balance.balance_micro) === reference.balance;
  return isRight
    ? wrong
    : [...wrong, `the balance is ${balance?.balance_micro}, by the reference ${reference.balance}`];
}

const statuses = compileOnce(() => query.selectFrom('instances').select(['id', 'status']));

/** How instances stand. */
export function statusesIn({ store }: Platform): { id: string; status: string }[] {
  return store.transact((tx) => tx.all(statuses({})));
}

/** How often things have come to pass in a store. */
export function tallyOf(file: string): Record<string, number> {
  const database = new BetterSqlite3(file, { readonly: true });
  const rows = database
    .prepare<[], { kind: string; times: number }>(
      'SELECT kind, count(*) AS times FROM events WHERE kind IS NOT NULL GROUP BY kind',
    )
    .all();
  const absorbed = database
    .prepare<[], { times: number }>('SELECT count(*) AS times FROM meter_intervals WHERE written_off_ms > 0')
    .get();
  database.close();
  return { absorbed: absorbed?.times ?? 0, ...Object.fromEntries(rows.map(({ kind, times }) => [kind, times])) };
}
