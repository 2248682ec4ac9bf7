import { dollars } from '../../../domain/money/money.js';
import { Refusal } from '../../../domain/refusal.js';
import { stopsDue, type LimitStop } from '../../../domain/money/settlement.js';
import { isPeriod } from '../../../domain/money/spend-cap.js';
import type { Tx } from '../../../store/store.js';
import { findInstance, type Instance } from '../../instances/queries.js';
import type { Platform } from '../../system/platform.js';
import { isAskedAlready } from './asked-stops.js';
import { loadAccounts } from './load-accounts.js';
import type { Spender } from './spend-check.js';

/**
 * Refuses with INVALID_STATE caps that stop more instances at once than their caller has been shown; `undone` are the starts that they
 * undo. The caps must be written, and what was used up to now settled.
 */
export function checkExpected(platform: Platform, tx: Tx, owner: Spender, undone: number, expected: number): void {
  const { organizationId, apiKeyId } = owner;
  const isOwn = ({ limit }: LimitStop) => isPeriod(limit.kind) && 'apiKeyId' in limit && limit.apiKeyId === apiKeyId;
  const would_stop = undone + countStops(platform, tx, organizationId, isOwn);
  if (would_stop <= expected) return;
  const instances = would_stop === 1 ? '1 instance' : `${would_stop} instances`;
  const message = `these caps are used up: they would stop ${instances} now, and expect allows ${expected}; send expect ${would_stop}, or higher caps`;
  throw new Refusal('INVALID_STATE', message, { would_stop });
}

/**
 * Refuses with INVALID_STATE limits of an instance that stop it at once, if its caller has not been shown that. The limits must be written,
 * and what was used up to now settled.
 */
export function checkExpectedOf(platform: Platform, tx: Tx, instance: Instance, expected: number): void {
  const { id, organization_id } = instance;
  const isOwn = ({ instanceId, limit }: LimitStop) => instanceId === id && !isPeriod(limit.kind);
  const would_stop = countStops(platform, tx, organization_id, isOwn);
  if (would_stop <= expected) return;
  const cost = dollars(instance.spend_micro);
  const message = `the instance has cost ${cost}, and these limits would stop it now; send expect ${would_stop}, or a higher limit`;
  throw new Refusal('INVALID_STATE', message, { would_stop });
}

/** Returns how many running instances the limits that `isMeant` takes stop at the next settlement. */
function countStops(platform: Platform, tx: Tx, organizationId: string, isMeant: (stop: LimitStop) => boolean): number {
  const account = loadAccounts(platform, tx, [organizationId]).get(organizationId);
  if (!account) return 0;
  const isStopped = ({ instanceId }: LimitStop) => {
    const instance = findInstance(tx, instanceId);
    return instance?.status === 'running' && !isAskedAlready(tx, instance);
  };
  return stopsDue(account, tx.now).filter((stop) => isMeant(stop) && isStopped(stop)).length;
}
