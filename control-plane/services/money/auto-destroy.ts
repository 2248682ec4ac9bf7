import { AUTO_DESTROY, GRACE_MS } from '../../domain/deadlines.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { requestDestroy } from '../instances/destroy.js';
import { findInstance } from '../instances/queries.js';
import { recordEvent } from '../instances/transitions.js';
import { oneByOne } from '../one-by-one.js';
import type { Platform } from '../platform.js';
import { settleOrganizations } from './settle.js';

const BATCH = 100;

/**
 * Destroys what is stopped or in error of organisations whose balance has been at or below zero for 24 hours and is at or below
 * -$5. Not while the wall clock is in doubt, and not before hosts and payments had time to speak. Answers how many.
 */
export function destroyUnpaid(platform: Platform): { destroyed: number } {
  if (!platform.clockWatch.isTrusted()) return { destroyed: 0 };
  if (platform.clock.monotonic() - platform.bootedAt < GRACE_MS) return { destroyed: 0 };
  const unpaid = platform.store.transact((tx) => tx.all(findUnpaid(tx).limit(BATCH)));
  const destroyed = oneByOne(platform, unpaid, (tx, { id, organization_id }) => {
    settleOrganizations(platform, tx, [organization_id]);
    const isStillUnpaid = tx.get(findUnpaid(tx).where('instances.id', '=', id)) !== undefined;
    const instance = findInstance(tx, id);
    if (!instance || !isStillUnpaid) return;
    const why = 'the balance has been at or below zero for 24 hours and is at or below -$5: the instance is destroyed';
    recordEvent(tx, id, 'unpaid', why);
    requestDestroy(tx, platform.ids, instance);
  });
  return { destroyed };
}

function findUnpaid(tx: Tx) {
  return query
    .selectFrom('organizations')
    .innerJoin('instances', 'instances.organization_id', 'organizations.id')
    .select(['instances.id', 'organization_id'])
    .where('low_since', '<=', tx.now - AUTO_DESTROY.afterMs)
    .where('balance_micro', '<=', AUTO_DESTROY.atMicro)
    .where('status', 'in', ['stopped', 'error']);
}
