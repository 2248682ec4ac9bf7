import { anOperator, type Actor } from '../../../domain/act.js';
import type { Operator } from '../../../domain/caller.js';
import { Refusal } from '../../../domain/refusal.js';
import type { Row } from '../../../store/schema.js';
import { query, sql } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { forgetMailsOf } from '../../mail/outbox.js';
import { recordAudit } from '../../system/audit.js';
import { newestFirst, pageOf, type Page, type PageRequest } from '../../system/pages.js';
import type { Core } from '../../system/platform.js';
import { revokeKeysOf } from '../../organizations/keys/api-keys.js';
import { forgetIdentitiesOf } from '../companies/identities.js';
import { forgetLinksOf } from '../links/link-requests.js';
import { endMembership, isLastAdmin, membersOf, MEMBER_ORDER, type Member } from '../../organizations/members.js';
import { getOrganization } from '../../organizations/organizations.js';
import { REMOVED, REMOVED_EMAILS } from '../../organizations/removed-users.js';
import { forgetFactorsOf } from '../factors/second-factors.js';
import { getUser, membershipsOf, type UserDetails } from '../users/users.js';

/** Who ends the memberships of a removed user. */
const BY_REMOVAL = anOperator('the account was removed');

/** Lists, for an operator, the users with an account, newest first, or only the one with this e-mail address. */
export function listUsers(core: Core, { email, ...request }: PageRequest & { email?: string }): Page<UserDetails> {
  let users = query
    .selectFrom('users')
    .select(['id', 'email', 'name', 'is_operator', 'created_at'])
    .where('email', 'not like', REMOVED_EMAILS);
  if (email !== undefined) users = users.where('email', '=', email);
  return core.store.transact((tx) => pageOf(tx, users, request, newestFirst()));
}

/** Lists an organization's members for an operator, in the order in which they joined. Refuses with ORGANIZATION_NOT_FOUND. */
export function listUsersOf(core: Core, organizationId: string, request: PageRequest): Page<Member> {
  return core.store.transact((tx) => {
    const { id } = getOrganization(tx, organizationId);
    return pageOf(tx, membersOf(id), request, MEMBER_ORDER);
  });
}

/**
 * Removes an account for an operator. One transaction ends its sessions, SSH keys, memberships and API keys, also the team keys
 * that it created, because the user knows them. The e-mail address becomes free again. Instances belong to the organizations and
 * stay. Refuses with USER_NOT_FOUND, OWN_ACCOUNT, and with LAST_ADMIN if an organization that has instances would have no admin.
 */
export function removeUser(core: Core, operator: Operator, id: string): void {
  core.store.transact((tx) => {
    const user = getUser(tx, id);
    if (id === operator.userId)
      throw new Refusal('OWN_ACCOUNT', 'this is your own account; ask another operator to remove it');
    endAccess(tx, user, BY_REMOVAL);
    forgetMailsOf(tx, id);
    forgetIdentitiesOf(tx, id);
    const nobody = { email: `${REMOVED}${id}`, name: 'Removed user', password_hash: '', is_operator: 0 as const };
    tx.run(query.updateTable('users').set(nobody).where('id', '=', id));
    recordAudit(tx, operator, 'user.remove', id, { email: user.email });
  });
}

/**
 * Ends everything by which somebody acts as a user, but the password and linked accounts: sessions, keys, links, second factors, and
 * memberships. Refuses
 * with LAST_ADMIN if an organization that has instances would have no admin.
 */
export function endAccess(tx: Tx, user: Row<'users'>, by: Actor): void {
  const { id } = user;
  for (const membership of membershipsOf(tx, id)) endMembershipOf(tx, membership, user, by);
  tx.run(query.deleteFrom('sessions').where('user_id', '=', id));
  tx.run(query.deleteFrom('ssh_keys').where('user_id', '=', id));
  forgetLinksOf(tx, id);
  forgetFactorsOf(tx, id);
  revokeKeysOf(tx, by, id);
}

function endMembershipOf(
  tx: Tx,
  { organization_id, role, joined_at }: Row<'memberships'>,
  user: Row<'users'>,
  by: Actor,
): void {
  const member = { id: user.id, email: user.email, name: user.name, role, joined_at };
  if (isLastAdmin(tx, organization_id, member)) refuseWhereInUse(tx, organization_id, user);
  endMembership(tx, by, 'member.remove', organization_id, member);
}

function refuseWhereInUse(tx: Tx, organizationId: string, { email }: Row<'users'>): void {
  const live = query.selectFrom('instances').select(({ fn }) => fn.countAll<number>().as('count'));
  const its = live.where('organization_id', '=', organizationId).where('status', '<>', sql.lit('destroyed'));
  const count = tx.get(its)?.count ?? 0;
  if (count === 0) return;
  const { name } = getOrganization(tx, organizationId);
  throw new Refusal(
    'LAST_ADMIN',
    `${email} is the last admin of "${name}" (${organizationId}), which has ${count} instance(s): destroy them first, or let another member become an admin`,
  );
}
