import { SetupError } from '../../shared/coded-error.js';
import { readMeta, writeMeta } from '../store/meta.js';
import type { Store } from '../store/store.js';
import type { Sealer } from './sealer.js';

const PURPOSE = 'key-check';

/** Throws SetupError when the database was sealed with another key: nothing is to be written with this one. */
export function checkKey(store: Store, sealer: Sealer): void {
  store.transact((tx) => {
    if (readMeta(tx, PURPOSE) === undefined) writeMeta(tx, PURPOSE, sealer.seal(PURPOSE, true).toString('base64'));
  });
  if (!isKeyOf(store, sealer))
    throw new SetupError('the secret key is not the one that this database was written with');
}

/** Whether the database was sealed with this key. */
export function isKeyOf(store: Store, sealer: Sealer): boolean {
  const known = store.transact((tx) => readMeta(tx, PURPOSE));
  if (known === undefined) return false;
  try {
    return sealer.open(PURPOSE, Buffer.from(known, 'base64')) === true;
  } catch {
    return false;
  }
}
