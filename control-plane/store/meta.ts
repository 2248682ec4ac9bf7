import { compileOnce, query, sql } from './sql.js';
import type { Tx } from './store.js';

/** A key of the table `meta`, which holds facts about the database itself. */
export type MetaKey =
  | 'epoch'
  | 'event_epoch'
  | 'restored_at'
  | 'key-check'
  | 'authority_certificate'
  | 'authority_key'
  | 'clock_step'
  | 'clock_seen'
  | 'clock_base'
  | 'ready_at'
  | 'drill'
  | 'settings'
  | 'settings_unaccepted'
  | 'zones_version';

export function readMeta(tx: Tx, key: MetaKey): string | undefined {
  return tx.get(valueOf({ key }))?.value;
}

const valueOf = compileOnce(({ key }: { key: MetaKey }) =>
  query.selectFrom('meta').select('value').where('key', '=', key),
);

export function writeMeta(tx: Tx, key: MetaKey, value: string): void {
  tx.run(putting({ key, value }));
}

const putting = compileOnce(({ key, value }: { key: MetaKey; value: string }) =>
  query
    .insertInto('meta')
    .values({ key, value })
    .onConflict((conflict) => conflict.column('key').doUpdateSet({ value })),
);

export function deleteMeta(tx: Tx, key: MetaKey): void {
  tx.run(query.deleteFrom('meta').where('key', '=', key));
}

/** Returns when the database was restored from a backup, in milliseconds since 1970 UTC; 0: never. */
export function restoredAt(tx: Tx): number {
  return Number(readMeta(tx, 'restored_at') ?? 0);
}

/** Returns whether the database was restored for a drill: nothing of it may reach the world outside. */
export function isDrill(tx: Tx): boolean {
  return readMeta(tx, 'drill') !== undefined;
}

/** The epoch of the events and audit lines that are written now, in a statement: a restore raises it, because numbers are given again. */
export const EVENT_EPOCH = sql<number>`(SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'event_epoch')`;
