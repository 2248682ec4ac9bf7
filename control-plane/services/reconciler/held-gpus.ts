import { compileOnce, query, sql, updateRows } from '../../store/sql.js';
import { forEachInOwnTransaction } from '../system/for-each.js';
import type { Core } from '../system/platform.js';
import { findInstance } from '../instances/queries.js';
import { considerRelease } from '../instances/release.js';

const BATCH = 200;

/** Releases the GPUs of instances that have been stopped for as long as their offer allows. Returns the number of instances. */
export function releaseHeldGpus(core: Core): { considered: number } {
  const due = core.store.transact((tx) => tx.all(dueAt({ now: tx.now })));
  const considered = forEachInOwnTransaction(core, due, (tx, { id }) => {
    const instance = findInstance(tx, id);
    if (instance) considerRelease(tx, instance);
    tx.run(updateRows('instances', { release_gpus_at: null }, { id }));
  });
  return { considered };
}

const dueAt = compileOnce(({ now }: { now: number }) =>
  query.selectFrom('instances').select('id').where('release_gpus_at', '<=', now).limit(sql.lit(BATCH)),
);
