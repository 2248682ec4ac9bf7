import type { Tx } from '../../store/store.js';
import type { Platform } from './platform.js';

/**
 * Works through what a worker has found, each item in a transaction of its own: one that fails holds up no other. Throws what
 * went wrong, once all are through; `afterFailure` may put off what would only fail again.
 */
export function forEachInOwnTransaction<Item>(
  { store }: Platform,
  items: readonly Item[],
  work: (tx: Tx, item: Item) => void,
  afterFailure: (tx: Tx, item: Item) => void = () => {},
): number {
  const errors: unknown[] = [];
  for (const item of items) {
    try {
      store.transact((tx) => work(tx, item));
    } catch (error) {
      errors.push(error);
      store.transact((tx) => afterFailure(tx, item));
    }
  }
  if (errors.length > 0) throw new AggregateError(errors, `${errors.length} of ${items.length} failed`);
  return items.length;
}
