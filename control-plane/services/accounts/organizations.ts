import { burnPerHourMicro } from '../../domain/burn.js';
import type { Ids } from '../../../shared/ids.js';
import type { AccountCaller, Caller, Role, SessionCaller } from '../../domain/caller.js';
import { Refusal } from '../../domain/refusal.js';
import { lastsUntil } from '../../domain/settlement.js';
import type { Row } from '../../store/schema.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { findLiveRates } from '../instances/queries.js';
import { loadAccounts } from '../money/unsettled.js';
import { checkLimit } from './limits.js';
import { newestFirst, pageOf, type Page, type PageRequest } from '../pages.js';
import type { Platform } from '../platform.js';

export type OrganizationRow = Row<'organizations'>;
export type OrganizationDetails = OrganizationRow & {
  burn_per_hour_micro: number;
  /** When the balance is used up by what is charged now, in milliseconds since 1970; null: nothing is charged, or not in sight. */
  lasts_until: number | null;
};

/** The caller's active organisation, with what one hour of it costs now. */
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

/** A new organisation, with the user as its admin. Refuses with LIMIT_REACHED who belongs to twenty. */
export function createOrganization(
  platform: Platform,
  caller: AccountCaller,
  request: { name: string },
): OrganizationDetails {
  return platform.store.transact((tx) => {
    const joined = query.selectFrom('memberships').select('organization_id as id').where('user_id', '=', caller.userId);
    checkLimit(tx, 'organizations', joined);
    const { id } = foundOrganization(tx, platform.ids, caller.userId, request.name);
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

export function foundOrganization(tx: Tx, ids: Ids, userId: string, name: string): Row<'organizations'> {
  const nothing = { balance_micro: 0, payments_frozen_at: null, low_since: null, settle_at: null };
  const organization = { id: ids.uuid(), name, ...nothing, created_at: tx.now };
  tx.run(query.insertInto('organizations').values(organization));
  join(tx, organization.id, userId, 'admin');
  return organization;
}

export function join(tx: Tx, organizationId: string, userId: string, role: Role): void {
  tx.run(
    query
      .insertInto('memberships')
      .values({ organization_id: organizationId, user_id: userId, role, joined_at: tx.now }),
  );
}

/** Operators: every organisation, newest first. */
export function listOrganizations(platform: Platform, request: PageRequest): Page<Row<'organizations'>> {
  const all = query.selectFrom('organizations').selectAll();
  return platform.store.transact((tx) => pageOf(tx, all, request, newestFirst()));
}

export function getOrganization(tx: Tx, id: string): Row<'organizations'> {
  const row = tx.get(query.selectFrom('organizations').selectAll().where('id', '=', id));
  if (!row) throw new Refusal('ORGANIZATION_NOT_FOUND', 'no organization has this id');
  return row;
}
