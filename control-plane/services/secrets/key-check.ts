import { SetupError } from '../../../shared/coded-error.js';
import { readMeta, writeMeta } from '../../store/meta.js';
import type { Store } from '../../store/store.js';
import type { Encryption } from './encryption.js';

/** The `meta` key, and also the purpose, of an encrypted value by which the right secret key is recognized. */
export const KEY_CHECK = 'key-check';

/** Throws SetupError if the database was encrypted with another key, because nothing must be written with this one. */
export function checkKey(store: Store, encryption: Encryption): void {
  store.transact((tx) => {
    if (readMeta(tx, KEY_CHECK) === undefined)
      writeMeta(tx, KEY_CHECK, encryption.encrypt(KEY_CHECK, true).toString('base64'));
  });
  if (!isKeyOf(store, encryption))
    throw new SetupError(
      'the secret key is not the one that this database was encrypted with: restore that one; if it is lost for good, see "The key is lost" in docs/day-two.md',
    );
}

/** Tells whether the database was encrypted with this key. False for a database without a key check. */
export function isKeyOf(store: Store, encryption: Encryption): boolean {
  const known = store.transact((tx) => readMeta(tx, KEY_CHECK));
  if (known === undefined) return false;
  try {
    return encryption.decrypt(KEY_CHECK, Buffer.from(known, 'base64')) === true;
  } catch {
    return false;
  }
}
