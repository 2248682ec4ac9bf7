import { anOperator } from '../../domain/act.js';
import type { Operator } from '../../domain/caller.js';
import { disksKeptUntil } from '../../domain/suspension.js';
import { updateRows } from '../../store/sql.js';
import { getOrganization, type OrganizationRow } from '../organizations/organizations.js';
import { recordEvent } from '../events/record.js';
import { enforceSuspension } from '../housekeeping/suspensions.js';
import { recordAct } from '../system/acts.js';
import { recordAudit } from '../system/audit.js';
import type { Core, Platform } from '../system/platform.js';

/**
 * Suspends an organization for an operator: nothing of it is deployed or started any more, what runs is stopped like by its renter, and
 * what is on its way to run is stopped once it runs. Its disks are kept, and charged, for some days from the suspension on. Whoever
 * suspends again with the same words changes nothing; with others, at least a day is left. Refuses with ORGANIZATION_NOT_FOUND.
 */
export function suspendOrganization(
  platform: Platform,
  operator: Operator,
  id: string,
  { reason, keep_disks_days }: { reason: string; keep_disks_days: number },
): OrganizationRow {
  return platform.store.transact((tx) => {
    const before = getOrganization(tx, id);
    const isSame = before.suspended_reason === reason && before.suspended_keep_days === keep_disks_days;
    if (before.suspended_at !== null && isSame) return before;
    const suspended_at = before.suspended_at ?? tx.now;
    const disks_kept_until = disksKeptUntil(suspended_at, keep_disks_days, tx.now);
    const why = { suspended_at, suspended_reason: reason, suspended_keep_days: keep_disks_days };
    tx.run(updateRows('organizations', { ...why, disks_kept_until, suspension_told_hours: null }, { id }));
    const told = { reason, disks_kept_until: new Date(disks_kept_until).toISOString() };
    recordEvent(tx, id, 'organization.suspended', `orgs/${id}`, told);
    recordAudit(tx, operator, 'organization.suspend', id, { reason, keep_disks_days });
    recordAct(tx, id, anOperator(reason), 'organization.suspend', `orgs/${id}`);
    enforceSuspension(platform, tx, id);
    return getOrganization(tx, id);
  });
}

/**
 * Ends the suspension of an organization for an operator. Its instances can be started again; nothing is started by this. Does nothing if
 * it is not suspended. Refuses with ORGANIZATION_NOT_FOUND.
 */
export function restoreOrganization(
  core: Core,
  operator: Operator,
  id: string,
  { reason }: { reason: string },
): OrganizationRow {
  return core.store.transact((tx) => {
    const before = getOrganization(tx, id);
    if (before.suspended_at === null) return before;
    const none = { suspended_at: null, suspended_reason: null, suspended_keep_days: null, disks_kept_until: null };
    tx.run(updateRows('organizations', { ...none, suspension_told_hours: null, suspension_look_at: null }, { id }));
    recordEvent(tx, id, 'organization.restored', `orgs/${id}`, { reason });
    recordAudit(tx, operator, 'organization.restore', id, { reason });
    recordAct(tx, id, anOperator(reason), 'organization.restore', `orgs/${id}`);
    return getOrganization(tx, id);
  });
}
