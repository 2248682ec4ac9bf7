import { sql, statement } from '../../control-plane/store/sql.js';
import type { Tx } from '../../control-plane/store/store.js';
import type { Grown } from './large-fleet.js';

/** Lets a transaction of a control plane grow its fleet. */
export function grownBy(tx: Tx): Grown {
  return {
    exec: (text) => void tx.run(statement(sql.raw(text))),
    columnsOf: (table) =>
      tx.all(statement<{ name: string }>(sql`SELECT name FROM pragma_table_info(${table})`)).map(({ name }) => name),
  };
}
