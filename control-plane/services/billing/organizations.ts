import { burnPerHourMicro } from '../../domain/burn.js';
import type { AccountCaller, Caller, SessionCaller } from '../../domain/caller.js';
import { lastsUntil } from '../../domain/settlement.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { findLiveRates } from '../instances/queries.js';
import { loadAccounts } from './load-accounts.js';
import { checkLimit } from '../accounts/limits.js';
import type { Platform } from '../system/platform.js';
import { type OrganizationRow, foundOrganization, getOrganization } from '../accounts/organizations.js';

export type OrganizationDetails = OrganizationRow & {
  burn_per_hour_micro: number;
  /** When the balance is used up by what is charged now, in milliseconds since 1970; null: nothing is charged, or not in sight. */
  lasts_until: number | null;
};

/** The caller's active organization, with what one hour of it costs now. */
export function describeOrganization(platform: Platform, caller: Caller): OrganizationDetails {
  return platform.store.transact((tx) => detailsOf(platform, tx, caller.organizationId));
}

function detailsOf(platform: Platform, tx: Tx, id: string): OrganizationDetails {
  const account = loadAccounts(platform, tx, [id]).get(id);
  return {
    ...getOrganization(tx, id),
    burn_per_hour_micro: burnPerHourMicro(findLiveRates(tx, id)),
    lasts_until: account ? lastsUntil(account, tx.now) : null,
  };
}

/** A new organization, with the user as its admin. Refuses with LIMIT_REACHED who belongs to twenty. */
export function createOrganization(
  platform: Platform,
  caller: AccountCaller,
  request: { name: string },
): OrganizationDetails {
  return platform.store.transact((tx) => {
    const joined = query.selectFrom('memberships').select('organization_id as id').where('user_id', '=', caller.userId);
    checkLimit(tx, 'organizations', joined);
    const { id } = foundOrganization(tx, caller.userId, request.name);
    return detailsOf(platform, tx, id);
  });
}

export function renameOrganization(
  platform: Platform,
  caller: SessionCaller,
  request: { name: string },
): OrganizationDetails {
  return platform.store.transact((tx) => {
    tx.run(query.updateTable('organizations').set({ name: request.name }).where('id', '=', caller.organizationId));
    return detailsOf(platform, tx, caller.organizationId);
  });
}
