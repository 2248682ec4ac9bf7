import type { Role } from '../../domain/caller.js';
import { Refusal } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { query, rowById } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordEvent } from '../events/record.js';
import { withdrawInvitesTo } from './ended-invites.js';

export type OrganizationRow = Row<'organizations'>;

export function foundOrganization(tx: Tx, userId: string, name: string): Row<'organizations'> {
  const nothing = { balance_micro: 0, payments_frozen_at: null, exhausted_since: null, settle_at: null };
  const warnings = { balance_low_hours: null, disks_at_risk_hours: null, second_factor_since: null };
  const suspension = { suspended_at: null, suspended_reason: null, suspended_keep_days: null, disks_kept_until: null };
  const looks = { suspension_told_hours: null, suspension_look_at: null };
  const organization = {
    id: tx.id(),
    name,
    ...nothing,
    ...warnings,
    ...suspension,
    ...looks,
    created_at: tx.now,
    founded_by: userId,
  };
  tx.run(query.insertInto('organizations').values(organization));
  join(tx, organization.id, userId, 'admin');
  return organization;
}

/** Makes a user a member of an organization, and withdraws what other invitations there are for them. */
export function join(tx: Tx, organizationId: string, userId: string, role: Role): void {
  tx.run(
    query
      .insertInto('memberships')
      .values({ organization_id: organizationId, user_id: userId, role, joined_at: tx.now }),
  );
  recordMember(tx, organizationId, 'member.joined', { id: userId, role });
  withdrawInvitesTo(tx, organizationId, userId);
}

export function recordMember(
  tx: Tx,
  organizationId: string,
  type: 'member.joined' | 'member.role_changed' | 'member.left',
  { id, role }: { id: string; role: Role },
): void {
  recordEvent(tx, organizationId, type, `members/${id}`, { user_id: id, role });
}

export function getOrganization(tx: Tx, id: string): Row<'organizations'> {
  const row = tx.get(rowById('organizations', id));
  if (!row) throw new Refusal('ORGANIZATION_NOT_FOUND', 'no organization has this id');
  return row;
}
