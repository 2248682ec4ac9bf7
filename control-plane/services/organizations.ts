import { burnPerHourMicro } from '../domain/burn.js';
import type { Caller, SessionCaller } from '../domain/caller.js';
import { Refusal } from '../domain/refusal.js';
import type { Row } from '../store/schema.js';
import { query } from '../store/sql.js';
import type { Tx } from '../store/store.js';
import { findLiveRates } from './instances/queries.js';
import type { Platform } from './platform.js';

export type OrganizationDetails = Row<'organizations'> & { burn_per_hour_micro: number };

/** The caller's active organisation, with what one hour of it costs now. */
export function describeOrganization(platform: Platform, caller: Caller): OrganizationDetails {
  return platform.store.transact((tx) => {
    const organization = getOrganization(tx, caller.organizationId);
    const burn = burnPerHourMicro(findLiveRates(tx, organization.id));
    return { ...organization, burn_per_hour_micro: burn };
  });
}

/** Operators: every organisation, newest first. */
export function listOrganizations(platform: Platform): Row<'organizations'>[] {
  return platform.store.transact((tx) =>
    tx.all(query.selectFrom('organizations').selectAll().orderBy('created_at', 'desc').orderBy('id')),
  );
}

/** An operator grants credit: one transaction row and the balance, together. Refuses with ORGANIZATION_NOT_FOUND. */
export function grantCredit(
  platform: Platform,
  operator: SessionCaller,
  organizationId: string,
  request: { amount_micro: number; reason: string },
): Row<'transactions'> & { balance_micro: number } {
  return platform.store.transact((tx) => {
    const organization = getOrganization(tx, organizationId);
    const row: Row<'transactions'> = {
      id: platform.ids.uuid(),
      organization_id: organizationId,
      kind: 'credit',
      amount_micro: request.amount_micro,
      reason: request.reason,
      author_id: operator.userId,
      created_at: tx.now,
    };
    const balance = organization.balance_micro + request.amount_micro;
    tx.run(query.insertInto('transactions').values(row));
    tx.run(query.updateTable('organizations').set({ balance_micro: balance }).where('id', '=', organizationId));
    return { ...row, balance_micro: balance };
  });
}

export function getOrganization(tx: Tx, id: string): Row<'organizations'> {
  const row = tx.get(query.selectFrom('organizations').selectAll().where('id', '=', id));
  if (!row) throw new Refusal('ORGANIZATION_NOT_FOUND', 'no organization has this id');
  return row;
}
