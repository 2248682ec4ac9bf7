import { SYSTEM, userActor, type Actor } from '../../../domain/act.js';
import { domainOf } from '../../../domain/identity/company.js';
import type { Row } from '../../../store/schema.js';
import { compileOnce, query, rowById, updateRows } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { endMembership, findMember, isLastAdmin } from '../../organizations/members.js';
import { join } from '../../organizations/organizations.js';
import { recordAct } from '../../system/acts.js';
import { endFactorRequestsAt } from '../factors/factor-requests.js';
import { findDomain, type Issuer } from '../companies/issuers.js';

/** Who ends what a person had by the company. */
const BY_COMPANY: Actor = {
  ...SYSTEM,
  reason: "the company's sign-in has refused the account as unknown or disabled",
};

/** Why a person stays whom the company has refused. */
const LAST_ADMIN = `${BY_COMPANY.reason}; the last admin stays a member`;

/**
 * Ends what a user has by a company that has refused the user as unknown or disabled: the sessions that its issuer has opened, and the
 * memberships in the organizations to which its domains assign people, as if the user had left them. Other organizations stay. The last
 * admin of an organization stays a member, which operators see until the user signs in at the company again or leaves.
 */
export function leaveCompany(tx: Tx, issuer: Issuer, userId: string): void {
  tx.run(query.deleteFrom('sessions').where('user_id', '=', userId).where('issuer', '=', issuer.url));
  endFactorRequestsAt(tx, userId, issuer.url);
  const left = organizationsOf(issuer).filter((id) => leaveOrganization(tx, id, userId));
  const own = assignedBy(tx, issuer, userId)?.organization_id ?? null;
  const left_organization_id = own !== null && left.includes(own) ? own : null;
  const refused = { refused_at: tx.now, left_organization_id };
  tx.run(updateRows('identities', refused, { user_id: userId, issuer: issuer.url }));
}

/** Returns the organizations to which the domains of an issuer assign people. */
function organizationsOf({ domains }: Issuer): string[] {
  return [...new Set(domains.flatMap(({ organization_id }) => organization_id ?? []))];
}

/** Ends a membership. Returns false if there is none, or if it stays because nobody else is an admin. */
function leaveOrganization(tx: Tx, organizationId: string, userId: string): boolean {
  const member = findMember(tx, organizationId, userId);
  if (!member) return false;
  if (isLastAdmin(tx, organizationId, member)) {
    tx.run(updateRows('memberships', { refused_at: tx.now }, { organization_id: organizationId, user_id: userId }));
    recordAct(tx, organizationId, BY_COMPANY, 'member.end_sessions', `members/${userId}`, LAST_ADMIN);
    return false;
  }
  endMembership(tx, BY_COMPANY, 'member.remove', organizationId, member);
  return true;
}

/**
 * Takes back a refusal, because the company signs the user in again: the user joins again the organization of the domain that the refusal
 * has ended, as the domain says now.
 */
export function comeBack(tx: Tx, issuer: Issuer, identity: Row<'identities'>, network: string): void {
  if (identity.refused_at === null) return;
  const { user_id, left_organization_id } = identity;
  tx.run(updateRows('identities', { refused_at: null, left_organization_id: null }, { id: identity.id }));
  for (const organization_id of organizationsOf(issuer))
    tx.run(updateRows('memberships', { refused_at: null }, { organization_id, user_id }));
  const assigned = assignedBy(tx, issuer, user_id);
  const user = tx.get(rowById('users', user_id));
  if (!user || !assigned || assigned.organization_id === null) return;
  if (assigned.organization_id !== left_organization_id || findMember(tx, left_organization_id, user_id)) return;
  join(tx, left_organization_id, user_id, assigned.role);
  const by = userActor(user.id, user.email);
  recordAct(tx, left_organization_id, by, 'member.join', `members/${user_id}`, null, network);
}

/** Returns the domain of an issuer that a user's address has; undefined: it is of no domain of this issuer. */
function assignedBy(tx: Tx, { id }: Issuer, userId: string): Row<'issuer_domains'> | undefined {
  const email = tx.get(emailOf({ userId }))?.email ?? '';
  const domain = findDomain(tx, domainOf(email) ?? '');
  return domain?.issuer_id === id ? domain : undefined;
}

const emailOf = compileOnce(({ userId }: { userId: string }) =>
  query.selectFrom('users').select('email').where('id', '=', userId),
);
