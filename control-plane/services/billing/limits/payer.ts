import { keyIdOf, type Caller } from '../../../domain/caller.js';
import type { InstanceStatus } from '../../../domain/instances/instance-state.js';
import { settle, type Account, type Settlement } from '../../../domain/money/settlement.js';
import { periodAt } from '../../../domain/money/spend-cap.js';
import type { Refusal } from '../../../domain/refusal.js';
import type { Tx } from '../../../store/store.js';
import { isOnPeriod } from '../../organizations/keys/cap-rows.js';
import { getOrganization } from '../../organizations/organizations.js';
import { findInstance, findLiveRates, instancesIn, type LiveInstance } from '../../instances/queries.js';
import { refusalOfSuspension } from '../../organizations/suspension.js';
import type { Platform } from '../../system/platform.js';
import { chargesFor, endedByLimit } from './after-settlement.js';
import { isAskedAlready } from './asked-stops.js';
import { limitDestroys } from './enforce-limits.js';
import { loadAccounts, type LoadedAccount } from './load-accounts.js';
import { findCaps, type CapState } from './spend-check.js';
import { spentIn } from './spent-days.js';

/** What an organization can pay with, and for what. */
export interface Payer {
  balanceMicro: number;
  isFrozen: boolean;
  /** Why an operator has suspended it: the refusal of what it must not do; undefined: it is not suspended. */
  suspension: Refusal | undefined;
  /** The instances that are not destroyed. */
  live: LiveInstance[];
  /** The API key that deploys; null: a session does. */
  apiKeyId: string | null;
  caps: CapState[];
}

/** Returns the caller's organization as its rows are: the caller settles it before. */
export function findPayer(tx: Tx, caller: Caller): Payer {
  const { organizationId } = caller;
  const apiKeyId = keyIdOf(caller);
  const organization = getOrganization(tx, organizationId);
  const { balance_micro, payments_frozen_at } = organization;
  return {
    balanceMicro: balance_micro,
    isFrozen: payments_frozen_at !== null,
    suspension: refusalOfSuspension(organization),
    live: findLiveRates(tx, organizationId),
    apiKeyId,
    caps: findCaps(tx, { organizationId, apiKeyId }),
  };
}

/**
 * Returns the caller's organization as a settlement up to now would leave it, and the account that the settlement would read. Writes
 * nothing: it must foretell whatever {@link settleOrganizations} does to the balance, to what counts for caps, and to the statuses of
 * instances.
 */
export function foreseePayer(platform: Platform, tx: Tx, caller: Caller): { payer: Payer; account: Account } {
  const { organizationId } = caller;
  const payer = findPayer(tx, caller);
  const account = loadAccounts(platform, tx, [organizationId]).get(organizationId);
  if (!account) throw new Error(`organization ${organizationId} has no account`);
  const settlement = settle(account, tx.now);
  const chargedMicro = settlement.bookings.reduce((sum, booking) => sum + booking.chargedMicro, 0);
  const statuses = statusesAfter(platform, tx, organizationId, account, settlement);
  const live = payer.live.map((one) => ({ ...one, status: statuses.get(one.id) ?? one.status }));
  const caps = payer.caps.map((state) => withBookings(state, settlement, tx.now));
  return { payer: { ...payer, balanceMicro: payer.balanceMicro - chargedMicro, live, caps }, account };
}

/** Returns the status of each instance that a settlement stops or destroys. */
function statusesAfter(
  platform: Platform,
  tx: Tx,
  organizationId: string,
  account: LoadedAccount,
  settlement: Settlement,
): Map<string, InstanceStatus> {
  const { exhaustedAt, stops } = settlement;
  const statuses = new Map<string, InstanceStatus>();
  if (exhaustedAt !== undefined)
    for (const instance of instancesIn(tx, organizationId, 'running'))
      if (!isAskedAlready(tx, instance, settlement)) statuses.set(instance.id, 'stopping');
  for (const { instanceId, limit } of stops) {
    const instance = findInstance(tx, instanceId);
    if (statuses.has(instanceId) || instance?.status !== 'running') continue;
    if (limitDestroys(platform, tx, instance, limit)) statuses.set(instanceId, 'destroying');
    else if (!isAskedAlready(tx, instance, settlement)) statuses.set(instanceId, 'stopping');
  }
  for (const id of endedByLimit(account, settlement, tx.now)) {
    const instance = findInstance(tx, id);
    if (instance?.status === 'stopped' && limitDestroys(platform, tx, instance, { kind: 'max_charge' }))
      statuses.set(id, 'destroying');
  }
  return statuses;
}

/** Adds what the settlement charges, also for instances that are destroyed by now. */
function withBookings(state: CapState, settlement: Settlement, now: number): CapState {
  const { cap, spentMicro } = state;
  if (!isOnPeriod(cap)) return state;
  return { cap, spentMicro: spentMicro + spentIn(chargesFor(cap, settlement), periodAt(cap.kind, now)) };
}
