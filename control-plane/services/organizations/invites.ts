import { DAY_MS } from '../../../shared/time.js';
import { actorOf } from '../../domain/act.js';
import type { AccountCaller, Role, SessionCaller } from '../../domain/caller.js';
import { Refusal } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { query, rowById } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordInvite, withdraw, type InviteDetails } from './ended-invites.js';
import { getOrganization, join } from './organizations.js';
import { checkLimit } from '../system/row-limits.js';
import { mailInvite } from '../mail/invite-mails.js';
import { recordAct } from '../system/acts.js';
import { newestFirst, pageOf, type Page, type PageRequest } from '../system/pages.js';
import type { Core, Platform } from '../system/platform.js';
import { checkNotSuspended } from './suspension.js';
import { hashToken } from '../secrets/tokens.js';

const INVITE_MS = 7 * DAY_MS;

export type { InviteDetails } from './ended-invites.js';

/**
 * Creates, for an admin, an invitation for one e-mail address. It expires after a week. Only this answer has the token, and the mail that
 * goes to the address if `mailed` is true: where too much was mailed already, the invitation is made without a mail. Refuses with
 * ORGANIZATION_SUSPENDED, ALREADY_MEMBER and LIMIT_REACHED.
 */
export function createInvite(
  platform: Platform,
  caller: SessionCaller,
  request: { email: string; role: Role },
): InviteDetails & { token: string; mailed: boolean } {
  const token = `inv_${platform.ids.hex(24)}`;
  return platform.store.transact((tx) => {
    checkNotSuspended(tx, caller.organizationId);
    const member = tx.get(
      query
        .selectFrom('memberships')
        .innerJoin('users', 'users.id', 'memberships.user_id')
        .select('users.id')
        .where('memberships.organization_id', '=', caller.organizationId)
        .where('users.email', '=', request.email),
    );
    if (member) throw new Refusal('ALREADY_MEMBER', `${request.email} is a member of this organization`);
    const open = query
      .selectFrom('invites')
      .select('id')
      .where('organization_id', '=', caller.organizationId)
      .where('expires_at', '>', tx.now);
    checkLimit(tx, 'invites', open);
    const row: InviteDetails = {
      id: tx.id(),
      organization_id: caller.organizationId,
      email: request.email,
      role: request.role,
      token_hash: hashToken(token),
      created_at: tx.now,
      expires_at: tx.now + INVITE_MS,
      made_by: caller.userId,
    };
    tx.run(query.insertInto('invites').values(row));
    recordInvite(tx, 'invite.created', row);
    recordAct(tx, row.organization_id, actorOf(caller), 'invite.create', `invites/${row.id}`);
    return { ...row, token, mailed: mailInvite(platform, tx, row, { token, by: caller }) };
  });
}

/** Lists, for an admin, the invitations that can still be accepted, newest first. */
export function listInvites(core: Core, caller: SessionCaller, request: PageRequest): Page<InviteDetails> {
  const all = query.selectFrom('invites').selectAll().where('organization_id', '=', caller.organizationId);
  return core.store.transact((tx) => pageOf(tx, all.where('expires_at', '>', tx.now), request, newestFirst()));
}

/** Deletes an invitation for an admin. Refuses with INVITE_NOT_FOUND. */
export function withdrawInvite(core: Core, caller: SessionCaller, id: string): void {
  core.store.transact((tx) => {
    const its = query.selectFrom('invites').selectAll().where('id', '=', id);
    const invite = tx.get(its.where('organization_id', '=', caller.organizationId));
    if (!invite) throw inviteNotFound();
    withdraw(tx, actorOf(caller), [invite]);
  });
}

/**
 * Makes the caller a member of the inviting organization. An invitation works once, and only for the user with its address.
 * Refuses with ALREADY_MEMBER, and with INVITE_NOT_FOUND, the same for an unknown, spent or expired token and for somebody
 * else's.
 */
export function acceptInvite(core: Core, caller: AccountCaller, token: string): Row<'organizations'> & { role: Role } {
  return core.store.transact((tx) => {
    const invite = findAcceptable(tx, caller, token);
    recordAct(tx, invite.organization_id, actorOf(caller), 'invite.accept', `invites/${invite.id}`);
    return joinBy(tx, invite, caller.userId);
  });
}

/** Returns what an invitation offers the caller. Refuses like {@link acceptInvite}. */
export function getInvite(
  core: Core,
  caller: AccountCaller,
  token: string,
): { organization: string; role: Role; expiresAt: number } {
  return core.store.transact((tx) => {
    const { organization_id, role, expires_at } = findAcceptable(tx, caller, token);
    return { organization: getOrganization(tx, organization_id).name, role, expiresAt: expires_at };
  });
}

export type OwnInvite = InviteDetails & { organization: string };

/** Lists the open invitations to the caller's address, newest first; none, unless the address was confirmed: it can be another person's. */
export function listOwnInvites(core: Core, caller: AccountCaller, request: PageRequest): Page<OwnInvite> {
  return core.store.transact((tx) => pageOf(tx, ownInvites(tx, caller), request, OWN_NEWEST_FIRST));
}

const OWN_NEWEST_FIRST = {
  by: { 'invites.created_at': 'desc', 'invites.id': 'desc' },
  keyOf: ({ created_at, id }: OwnInvite) => [created_at, id],
} as const;

/** Makes the caller a member by an invitation of {@link listOwnInvites}. Refuses with INVITE_NOT_FOUND and ALREADY_MEMBER. */
export function acceptOwnInvite(core: Core, caller: AccountCaller, id: string): Row<'organizations'> & { role: Role } {
  return core.store.transact((tx) => {
    const invite = tx.get(ownInvites(tx, caller).where('invites.id', '=', id));
    if (!invite) throw inviteNotFound();
    checkNoMember(tx, caller, invite);
    recordAct(tx, invite.organization_id, actorOf(caller), 'invite.accept', `invites/${id}`);
    return joinBy(tx, invite, caller.userId);
  });
}

function ownInvites(tx: Tx, { userId, email }: AccountCaller) {
  const isConfirmed = tx.get(rowById('users', userId))?.email_verified_at != null;
  return query
    .selectFrom('invites')
    .innerJoin('organizations', 'organizations.id', 'invites.organization_id')
    .selectAll('invites')
    .select('organizations.name as organization')
    .where('invites.email', '=', isConfirmed ? email : '')
    .where('invites.expires_at', '>', tx.now);
}

function findAcceptable(tx: Tx, caller: AccountCaller, token: string): InviteDetails {
  const invite = findInvite(tx, token, caller.email);
  checkNoMember(tx, caller, invite);
  return invite;
}

function checkNoMember(tx: Tx, caller: AccountCaller, invite: InviteDetails): void {
  const known = tx.get(
    query
      .selectFrom('memberships')
      .select('role')
      .where('organization_id', '=', invite.organization_id)
      .where('user_id', '=', caller.userId),
  );
  if (known) throw new Refusal('ALREADY_MEMBER', 'you are a member of this organization');
}

/** Returns the invitation of this token and e-mail address. Refuses with INVITE_NOT_FOUND. */
export function findInvite(tx: Tx, token: string, email: string): InviteDetails {
  const invite = tx.get(
    query
      .selectFrom('invites')
      .selectAll()
      .where('token_hash', '=', hashToken(token))
      .where('email', '=', email)
      .where('expires_at', '>', tx.now),
  );
  if (!invite) throw inviteNotFound();
  return invite;
}

/** Makes the user a member of the inviting organization and deletes the invitation. */
export function joinBy(tx: Tx, invite: InviteDetails, userId: string): Row<'organizations'> & { role: Role } {
  tx.run(query.deleteFrom('invites').where('id', '=', invite.id));
  join(tx, invite.organization_id, userId, invite.role);
  return { ...getOrganization(tx, invite.organization_id), role: invite.role };
}

export function inviteNotFound(): Refusal {
  return new Refusal(
    'INVITE_NOT_FOUND',
    'you have no such invitation: it may be accepted already, withdrawn or expired',
  );
}
