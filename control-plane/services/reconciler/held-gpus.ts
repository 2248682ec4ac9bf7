import { query } from '../../store/sql.js';
import { forEachInOwnTransaction } from '../system/for-each.js';
import type { Platform } from '../system/platform.js';
import { findInstance } from '../instances/queries.js';
import { considerRelease } from '../instances/release.js';

const BATCH = 200;

/** Gives GPUs back to the market that a stopped instance has held for as long as its offer lets it. Answers how many instances. */
export function releaseHeldGpus(platform: Platform): { considered: number } {
  const due = platform.store.transact((tx) =>
    tx.all(query.selectFrom('instances').select('id').where('release_gpus_at', '<=', tx.now).limit(BATCH)),
  );
  const considered = forEachInOwnTransaction(platform, due, (tx, { id }) => {
    const instance = findInstance(tx, id);
    if (instance) considerRelease(tx, instance);
    tx.run(query.updateTable('instances').set({ release_gpus_at: null }).where('id', '=', id));
  });
  return { considered };
}
