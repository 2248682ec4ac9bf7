import { DAY_MS } from '../../../../shared/time.js';
import { burnPerHourMicro, chargedPerHourMicro } from '../../../domain/money/burn.js';
import { actorOf } from '../../../domain/act.js';
import type { AccountCaller, Caller, SessionCaller } from '../../../domain/caller.js';
import { lastsUntil } from '../../../domain/money/settlement.js';
import { query } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { findLiveRates } from '../../instances/queries.js';
import { loadAccounts } from '../limits/load-accounts.js';
import { checkLimit } from '../../system/row-limits.js';
import { recordAct } from '../../system/acts.js';
import type { Platform } from '../../system/platform.js';
import { type OrganizationRow, foundOrganization, getOrganization } from '../../organizations/organizations.js';

export type OrganizationDetails = OrganizationRow & {
  burn_per_hour_micro: number;
  charged_per_hour_micro: number;
  /**
   * When the balance runs out at the present charges, in ms since 1970; null if nothing is charged or it lasts over a century.
   */
  lasts_until: number | null;
  /** Whether renters can pay on a page of the payment provider. */
  takes_payments: boolean;
};

/** Returns the caller's active organization with its present burn. */
export function describeOrganization(platform: Platform, caller: Caller): OrganizationDetails {
  return platform.store.transact((tx) => describeOrganizationOf(platform, tx, caller.organizationId));
}

/** Returns an organization with its present burn. Refuses with ORGANIZATION_NOT_FOUND. */
export function describeOrganizationOf(platform: Platform, tx: Tx, id: string): OrganizationDetails {
  const account = loadAccounts(platform, tx, [id]).get(id);
  const live = findLiveRates(tx, id);
  return {
    ...getOrganization(tx, id),
    burn_per_hour_micro: burnPerHourMicro(live),
    charged_per_hour_micro: chargedPerHourMicro(live),
    lasts_until: account ? lastsUntil(account, tx.now) : null,
    takes_payments: platform.payments.hasCheckout,
  };
}

/**
 * Creates an organization with the user as its admin. Refuses a member of 20 organizations with LIMIT_REACHED, and whoever has
 * made 20 in a day, also if they have left them; operators make them for customers.
 */
export function createOrganization(
  platform: Platform,
  caller: AccountCaller,
  request: { name: string },
): OrganizationDetails {
  return platform.store.transact((tx) => {
    const { userId, isOperator } = caller;
    const joined = query.selectFrom('memberships').select('organization_id as id').where('user_id', '=', userId);
    const made = query.selectFrom('organizations').select('id').where('founded_by', '=', userId);
    checkLimit(tx, 'organizations', joined);
    if (!isOperator) checkLimit(tx, 'organizations', made.where('created_at', '>', tx.now - DAY_MS));
    const { id } = foundOrganization(tx, caller.userId, request.name);
    recordAct(tx, id, actorOf(caller), 'organization.create', `orgs/${id}`);
    return describeOrganizationOf(platform, tx, id);
  });
}

export function renameOrganization(
  platform: Platform,
  caller: SessionCaller,
  request: { name: string },
): OrganizationDetails {
  return platform.store.transact((tx) => {
    tx.run(query.updateTable('organizations').set({ name: request.name }).where('id', '=', caller.organizationId));
    const { organizationId } = caller;
    recordAct(tx, organizationId, actorOf(caller), 'organization.rename', `orgs/${organizationId}`);
    return describeOrganizationOf(platform, tx, organizationId);
  });
}
