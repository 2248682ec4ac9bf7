import { Refusal } from '../../domain/refusal.js';
import { stopsDue, type LimitStop } from '../../domain/settlement.js';
import { isPeriod } from '../../domain/spend-cap.js';
import type { Tx } from '../../store/store.js';
import { findInstance } from '../instances/queries.js';
import type { Platform } from '../system/platform.js';
import { isAskedAlready } from './asked-stops.js';
import { loadAccounts } from './load-accounts.js';
import type { Spender } from './spend-check.js';

/**
 * Refuses with INVALID_STATE caps that stop more instances at once than their caller has been shown; `undone` are the starts that they
 * undo. The caps must be written, and what was used up to now settled.
 */
export function checkExpected(platform: Platform, tx: Tx, owner: Spender, undone: number, expected: number): void {
  const would_stop = undone + countStops(platform, tx, owner);
  if (would_stop <= expected) return;
  const instances = would_stop === 1 ? '1 instance' : `${would_stop} instances`;
  const message = `these caps are used up: they would stop ${instances} now, and expect allows ${expected}; send expect ${would_stop}, or higher caps`;
  throw new Refusal('INVALID_STATE', message, { would_stop });
}

/** Returns how many running instances the caps of an organization or an API key stop at the next settlement. */
function countStops(platform: Platform, tx: Tx, { organizationId, apiKeyId }: Spender): number {
  const account = loadAccounts(platform, tx, [organizationId]).get(organizationId);
  if (!account) return 0;
  const isOwn = ({ limit }: LimitStop) => isPeriod(limit.kind) && 'apiKeyId' in limit && limit.apiKeyId === apiKeyId;
  const isStopped = ({ instanceId }: LimitStop) => {
    const instance = findInstance(tx, instanceId);
    return instance?.status === 'running' && !isAskedAlready(tx, instance);
  };
  return stopsDue(account, tx.now).filter((stop) => isOwn(stop) && isStopped(stop)).length;
}
