import { AUTO_DESTROY, GRACE_MS } from '../../domain/deadlines.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { instancesIn, type Instance } from '../instances/queries.js';
import { forEachInOwnTransaction } from '../system/for-each.js';
import type { Platform } from '../system/platform.js';
import { settleOrganizations } from './settle.js';
import { recordEvent } from '../system/timeline.js';
import { requestDestroy } from '../instances/requests.js';

const BATCH = 100;

/**
 * Destroys stopped instances and instances in `error` of organizations whose balance has been at or below zero for 24 hours and is at
 * or below -$5. Does nothing while an operator must confirm the clock, and in the first two minutes of a control plane, in which
 * hosts and the payment provider report what they missed. Returns the number of instances destroyed.
 */
export function destroyUnpaid(platform: Platform): { destroyed: number } {
  if (!platform.clockSteps.isTrusted()) return { destroyed: 0 };
  if (platform.clock.monotonic() - platform.bootedAt < GRACE_MS) return { destroyed: 0 };
  const unpaid = platform.store.transact((tx) => findUnpaid(tx).flatMap((id) => downIn(tx, id)));
  const destroyed = forEachInOwnTransaction(platform, unpaid.slice(0, BATCH), (tx, { id, organization_id }) => {
    settleOrganizations(platform, tx, [organization_id]);
    const instance =
      findUnpaid(tx).includes(organization_id) && downIn(tx, organization_id).find((its) => its.id === id);
    if (!instance) return;
    const why = 'the balance has been at or below zero for 24 hours and is at or below -$5: the instance is destroyed';
    recordEvent(tx, id, 'unpaid', why);
    requestDestroy(tx, instance);
  });
  return { destroyed };
}

/** Returns the ids of organizations whose instances must be destroyed. */
function findUnpaid(tx: Tx): string[] {
  const low = query
    .selectFrom('organizations')
    .select('id')
    .where('exhausted_since', '<=', tx.now - AUTO_DESTROY.afterMs);
  return tx.all(low.where('balance_micro', '<=', AUTO_DESTROY.atMicro)).map(({ id }) => id);
}

function downIn(tx: Tx, organizationId: string): Instance[] {
  return [...instancesIn(tx, organizationId, 'stopped'), ...instancesIn(tx, organizationId, 'error')];
}
