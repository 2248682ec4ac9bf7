import { readMeta, writeMeta } from '../../store/meta.js';
import { query } from '../../store/sql.js';
import type { Store } from '../../store/store.js';

/** The epoch that the migrations give. */
const UNSET = '1';

/**
 * Gives the events of a new store an epoch of its own: the time of its first start. Otherwise its ids would be those of every other
 * store, and a reader of the operators' stream that goes on after an id of an earlier store would miss events and not be told. A store
 * that has events keeps its epoch.
 */
export function beginEventEpoch(store: Pick<Store, 'transact'>): void {
  store.transact((tx) => {
    if (readMeta(tx, 'event_epoch') !== UNSET) return;
    const hasEvents = tx.get(query.selectFrom('events').select('number').limit(1)) !== undefined;
    if (!hasEvents) writeMeta(tx, 'event_epoch', String(tx.now));
  });
}
