import { sql, statement } from '../../store/sql.js';
import { readMeta, writeMeta, type MetaKey } from '../../store/meta.js';
import type { Store, Tx } from '../../store/store.js';
import type { Purpose, Sealer } from './encryption.js';

/** Everything that is sealed, with what it was sealed for. */
export const SEALED_COLUMNS = [
  { table: 'templates', column: 'env_sealed', purpose: 'template.env' },
  { table: 'templates', column: 'registry_sealed', purpose: 'template.registry' },
  { table: 'instances', column: 'workload_sealed', purpose: 'instance.workload' },
  { table: 'instances', column: 'access_token_sealed', purpose: 'instance.access_token' },
] as const;
const SEALED_META = ['key-check', 'authority_key'] as const satisfies MetaKey[];

/** Seals with `to` all that was sealed with `from`, in one transaction. Answers how many values that were. */
export function reseal(store: Store, from: Sealer, to: Sealer): number {
  return store.transact((tx) => {
    const again = (purpose: Purpose, sealed: Buffer) => to.seal(purpose, from.open(purpose, sealed));
    let count = 0;
    for (const place of SEALED_COLUMNS) count += resealColumn(tx, place, again);
    for (const key of SEALED_META) {
      const sealed = readMeta(tx, key);
      if (sealed === undefined) continue;
      writeMeta(tx, key, again(key, Buffer.from(sealed, 'base64')).toString('base64'));
      count++;
    }
    return count;
  });
}

function resealColumn(
  tx: Tx,
  { table, column, purpose }: (typeof SEALED_COLUMNS)[number],
  again: (purpose: Purpose, sealed: Buffer) => Buffer,
): number {
  const rows = tx.all(
    statement<{ id: string; sealed: Buffer }>(
      sql`SELECT id, ${sql.ref(column)} AS sealed FROM ${sql.table(table)} WHERE ${sql.ref(column)} IS NOT NULL`,
    ),
  );
  for (const { id, sealed } of rows)
    tx.run(
      statement(sql`UPDATE ${sql.table(table)} SET ${sql.ref(column)} = ${again(purpose, sealed)} WHERE id = ${id}`),
    );
  return rows.length;
}
