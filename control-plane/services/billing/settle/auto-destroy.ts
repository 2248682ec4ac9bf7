import { AUTO_DESTROY, GRACE_MS } from '../../../domain/deadlines.js';
import { compileOnce, query, sql } from '../../../store/sql.js';
import { forEachInOwnTransaction } from '../../system/for-each.js';
import type { Platform } from '../../system/platform.js';
import { settleOrganizations } from './settle.js';
import { requestDestroy } from '../../instances/requests.js';

const BATCH = 100;

/**
 * Destroys stopped instances and instances in `error` of organizations whose balance has been at or below zero for 24 hours and is at
 * or below -$5. Does nothing while an operator must confirm the clock, and in the first two minutes of a control plane, in which
 * hosts and the payment provider report what they missed. Returns the number of instances destroyed.
 */
export function destroyUnpaid(platform: Platform): { destroyed: number } {
  if (!platform.clockSteps.isTrusted()) return { destroyed: 0 };
  if (platform.clock.monotonic() - platform.bootedAt < GRACE_MS) return { destroyed: 0 };
  const unpaid = platform.store.transact((tx) => tx.all(someUnpaid({ since: tx.now - AUTO_DESTROY.afterMs })));
  const destroyed = forEachInOwnTransaction(platform, unpaid, (tx, { id, organization_id }) => {
    settleOrganizations(platform, tx, [organization_id]);
    const instance = tx.get(unpaidSince(tx.now - AUTO_DESTROY.afterMs).where('instances.id', '=', id));
    if (!instance) return;
    const message =
      'the balance has been at or below zero for 24 hours and is at or below -$5: the instance is destroyed';
    requestDestroy(tx, instance, { kind: 'unpaid', message });
  });
  return { destroyed };
}

const someUnpaid = compileOnce(({ since }: { since: number }) => unpaidSince(since).limit(sql.lit(BATCH)));

/** Selects the instances that must be destroyed because their organization has not paid since then. */
function unpaidSince(since: number) {
  return query
    .selectFrom('instances')
    .innerJoin('organizations', 'organizations.id', 'instances.organization_id')
    .selectAll('instances')
    .where('status', 'in', ['stopped', 'error'])
    .where('status', '<>', sql.lit('destroyed'))
    .where('exhausted_since', '<=', since)
    .where('balance_micro', '<=', AUTO_DESTROY.atMicro);
}
