import { actorOf, type Act, type Actor } from '../../domain/act.js';
import { losesRight, type AccountCaller, type Role, type SessionCaller } from '../../domain/caller.js';
import { Refusal } from '../../domain/refusal.js';
import { query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { revokeKeysOf } from './keys/api-keys.js';
import { withdrawInvitesBy } from './ended-invites.js';
import { recordMember } from './organizations.js';
import { recordAct } from '../system/acts.js';
import { pageOf, type Order, type Page, type PageRequest } from '../system/pages.js';
import type { Core } from '../system/platform.js';
import { recordNote } from '../events/timeline.js';

export interface Member {
  id: string;
  email: string;
  name: string;
  role: Role;
  joined_at: number;
}

/** Lists, for an admin, the members of the organization, in the order in which they joined. */
export function listMembers(core: Core, caller: SessionCaller, request: PageRequest): Page<Member> {
  return core.store.transact((tx) => pageOf(tx, membersOf(caller.organizationId), request, MEMBER_ORDER));
}

/** The order in which members joined. */
export const MEMBER_ORDER: Order<Member> = {
  by: { 'memberships.joined_at': 'asc', 'memberships.user_id': 'asc' },
  keyOf: ({ joined_at, id }) => [joined_at, id],
};

/**
 * Changes a member's role for an admin. Whoever may change less than before loses their personal API keys: these act as a member, whatever
 * the role. The invitations of somebody who is no admin any more are withdrawn. Refuses with MEMBER_NOT_FOUND, and with LAST_ADMIN if no
 * admin would be left.
 */
export function changeRole(core: Core, caller: SessionCaller, userId: string, role: Role): Member {
  return core.store.transact((tx) => {
    const member = getMember(tx, caller.organizationId, userId);
    if (role !== 'admin') keepAnAdmin(tx, caller.organizationId, member);
    tx.run(
      query
        .updateTable('memberships')
        .set({ role })
        .where('organization_id', '=', caller.organizationId)
        .where('user_id', '=', userId),
    );
    const changed = { ...member, role };
    if (role !== member.role) recordMember(tx, caller.organizationId, 'member.role_changed', changed);
    recordAct(tx, caller.organizationId, actorOf(caller), 'member.role', `members/${userId}`);
    if (losesRight('administer', member.role, role))
      withdrawInvitesBy(tx, actorOf(caller), userId, caller.organizationId);
    if (losesRight('change', member.role, role)) {
      const did = `${member.email} has the role ${role} now`;
      tellInstances(tx, caller.organizationId, member, { kind: 'member_demoted', did });
      revokeKeysOf(tx, actorOf(caller), userId, caller.organizationId);
    }
    return changed;
  });
}

/** Removes a member for an admin. Refuses like {@link changeRole}. */
export function removeMember(core: Core, caller: SessionCaller, userId: string): void {
  core.store.transact((tx) => depart(tx, actorOf(caller), 'member.remove', caller.organizationId, userId));
}

/** Ends the caller's own membership. Refuses like {@link changeRole}. */
export function leave(core: Core, caller: AccountCaller, organizationId: string): void {
  core.store.transact((tx) => depart(tx, actorOf(caller), 'member.leave', organizationId, caller.userId));
}

function depart(tx: Tx, by: Actor, action: Act, organizationId: string, userId: string): void {
  const member = getMember(tx, organizationId, userId);
  keepAnAdmin(tx, organizationId, member);
  endMembership(tx, by, action, organizationId, member);
}

/**
 * Deletes a membership, revokes the member's personal keys and withdraws the invitations that they have made. Team keys and instances
 * belong to the organization and stay. Each instance gets an event that advises to replace its access; replacing it here would cut off the
 * work of others.
 */
export function endMembership(tx: Tx, by: Actor, action: Act, organizationId: string, member: Member): void {
  const { id: userId } = member;
  const did = `${member.email} has left the organization`;
  tellInstances(tx, organizationId, member, { kind: 'member_left', did });
  tx.run(query.deleteFrom('memberships').where('organization_id', '=', organizationId).where('user_id', '=', userId));
  recordMember(tx, organizationId, 'member.left', member);
  recordAct(tx, organizationId, by, action, `members/${userId}`);
  revokeKeysOf(tx, by, userId, organizationId);
  withdrawInvitesBy(tx, by, userId, organizationId);
}

function tellInstances(
  tx: Tx,
  organizationId: string,
  { email }: Member,
  { kind, did }: { kind: 'member_left' | 'member_demoted'; did: string },
): void {
  const live = query.selectFrom('instances').select(['id', 'deployed_by']).where('status', '<>', sql.lit('destroyed'));
  for (const { id, deployed_by } of tx.all(live.where('organization_id', '=', organizationId))) {
    const holds = deployed_by === email ? 'deployed this instance' : 'may know the access token of this instance';
    recordNote(tx, id, kind, `${did} and ${holds}: replace its access token`);
  }
}

/** Returns a member of an organization; undefined: the user is none. */
export function findMember(tx: Tx, organizationId: string, userId: string): Member | undefined {
  return tx.get(membersOf(organizationId).where('users.id', '=', userId));
}

function getMember(tx: Tx, organizationId: string, userId: string): Member {
  const member = findMember(tx, organizationId, userId);
  if (!member) throw new Refusal('MEMBER_NOT_FOUND', 'no member of this organization has this id');
  return member;
}

function keepAnAdmin(tx: Tx, organizationId: string, member: Member): void {
  if (isLastAdmin(tx, organizationId, member))
    throw new Refusal('LAST_ADMIN', 'this is the last admin of the organization; make another member an admin first');
}

export function isLastAdmin(tx: Tx, organizationId: string, { role }: Member): boolean {
  if (role !== 'admin') return false;
  return tx.all(membersOf(organizationId).where('memberships.role', '=', 'admin')).length === 1;
}

export function membersOf(organizationId: string) {
  return query
    .selectFrom('memberships')
    .innerJoin('users', 'users.id', 'memberships.user_id')
    .select(['users.id', 'users.email', 'users.name', 'memberships.role', 'memberships.joined_at'])
    .where('memberships.organization_id', '=', organizationId);
}
