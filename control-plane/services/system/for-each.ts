import type { Tx } from '../../store/store.js';
import type { Core } from './platform.js';

/**
 * Handles each item in a transaction of its own, so that one failure does not hold up the others. Afterwards throws an
 * AggregateError of all failures. `afterFailure` can postpone an item that would only fail again. It returns 'handled' if that is all
 * there is to do, as after a refusal: then this is no failure. Returns the number of items.
 */
export function forEachInOwnTransaction<Item>(
  { store }: Core,
  items: readonly Item[],
  work: (tx: Tx, item: Item) => void,
  afterFailure: (tx: Tx, item: Item, error: unknown) => unknown = () => undefined,
): number {
  const errors: unknown[] = [];
  for (const item of items) {
    try {
      store.transact((tx) => work(tx, item));
    } catch (error) {
      if (store.transact((tx) => afterFailure(tx, item, error)) !== 'handled') errors.push(error);
    }
  }
  if (errors.length > 0) throw new AggregateError(errors, `${errors.length} of ${items.length} failed`);
  return items.length;
}
