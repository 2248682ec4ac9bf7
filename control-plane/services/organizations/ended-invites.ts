import { SYSTEM, type Actor } from '../../domain/act.js';
import type { Row } from '../../store/schema.js';
import { query, rowById } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordEvent } from '../events/record.js';
import { recordAct } from '../system/acts.js';

export type InviteDetails = Row<'invites'>;

/** Who withdraws the other invitations of somebody who has joined. */
const BY_JOINING: Actor = { ...SYSTEM, reason: 'the invited person is a member now' };

/**
 * Withdraws the open invitations that a user has made, in one organization or in all: somebody who may not invite any more must not come
 * back by one that was made before. One whose maker is not known is withdrawn with those of any admin of its organization.
 */
export function withdrawInvitesBy(tx: Tx, by: Actor, userId: string, organizationId?: string): void {
  const open = query.selectFrom('invites').selectAll();
  if (organizationId === undefined) return withdraw(tx, by, tx.all(open.where('made_by', '=', userId)));
  const its = tx.all(open.where('organization_id', '=', organizationId));
  withdraw(
    tx,
    by,
    its.filter(({ made_by }) => made_by === userId || made_by === null),
  );
}

/** Withdraws the invitations to somebody who joins an organization: with a second one, they could come back after they were removed. */
export function withdrawInvitesTo(tx: Tx, organizationId: string, userId: string): void {
  const email = tx.get(rowById('users', userId))?.email ?? '';
  const its = query.selectFrom('invites').selectAll().where('organization_id', '=', organizationId);
  withdraw(tx, BY_JOINING, tx.all(its.where('email', '=', email)));
}

/** Deletes invitations. */
export function withdraw(tx: Tx, by: Actor, invites: readonly InviteDetails[]): void {
  for (const invite of invites) {
    tx.run(query.deleteFrom('invites').where('id', '=', invite.id));
    recordInvite(tx, 'invite.revoked', invite);
    recordAct(tx, invite.organization_id, by, 'invite.withdraw', `invites/${invite.id}`);
  }
}

/** Tells the organization of an invitation. */
export function recordInvite(tx: Tx, type: 'invite.created' | 'invite.revoked', invite: InviteDetails): void {
  const { id, organization_id, role } = invite;
  recordEvent(tx, organization_id, type, `invites/${id}`, { invite_id: id, role });
}
