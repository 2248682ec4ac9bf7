import { networkOf } from '../../domain/network.js';
import type { Row } from '../../store/schema.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Platform } from '../system/platform.js';
import { queueMail } from './outbox.js';
import { refusesInvites } from './refused-invites.js';
import { countInviteMail } from './strangers.js';

/**
 * Mails an invitation to the invited address; the mail has its token. Returns whether it does: not without mail, not when its maker, their
 * network, or all who write to this address have used up what they may mail in a day, and not to an address that wants no such mails.
 */
export function mailInvite(
  platform: Platform,
  tx: Tx,
  invite: Row<'invites'>,
  { token, by }: { token: string; by: { userId: string; email: string } },
): boolean {
  const { id, organization_id, email, role, expires_at } = invite;
  if (!platform.mail || refusesInvites(tx, email)) return false;
  const network = tx.address === null ? null : networkOf(tx.address);
  if (!countInviteMail(tx, { userId: by.userId, address: email, network })) return false;
  const organization = tx.get(query.selectFrom('organizations').select('name').where('id', '=', organization_id));
  const whose = { userId: null, address: email, organizationId: organization_id, sender: by.userId };
  const names = { organization: organization?.name ?? '', invited_by: by.email };
  const item = { kind: 'invite' as const, invite_id: id, ...names, role, token, expires_at };
  return queueMail(platform, tx, { ...whose, about: `invite ${id}`, item });
}
