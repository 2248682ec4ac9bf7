import { hash } from 'node:crypto';
import { messageOf } from '../../../shared/coded-error.js';
import { categoryOf, isChoice, itemsOf, type Mail, type MailContent, type MailItem } from '../../domain/mail/mail.js';
import { layOut } from '../../domain/mail/mail-layout.js';
import { mailLinks } from '../../domain/mail/mail-links.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Encryption } from '../secrets/encryption.js';
import type { Platform } from '../system/platform.js';
import { contentOf, type MailRow } from './outbox.js';
import { isSwitchedOff } from './preferences.js';
import { refusesInvites } from './refused-invites.js';
import { refusalTokenFor, unsubscribeTokenFor } from './unsubscribe.js';

/** What addresses look like that can be in no way understood as two, or as a header. */
const PLAIN_ADDRESS = /^[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-z0-9-]+(\.[a-z0-9-]+)*$/i;

/** A mail that can never be sent: its content or its address cannot be used. */
export class UnusableMail extends Error {}

/**
 * Returns a mail as it is to be sent now; undefined: it is of no use any more, because its user or the invitation is gone, or has left the
 * organization, or does not want it. Throws UnusableMail.
 */
export function composeMail({ encryption, publicUrl }: Platform, tx: Tx, row: MailRow): Mail | undefined {
  const to = row.user_id === null ? row.address : addressOf(tx, row.user_id);
  const content = wanted(tx, row, readContent(encryption, row));
  if (to === undefined || content === undefined) return undefined;
  if (!PLAIN_ADDRESS.test(to)) throw new UnusableMail('its address is not one that can be mailed to');
  const links = mailLinks(publicUrl ?? '');
  const token = unsubscribeTokenFor(encryption, row.user_id, content);
  const unsubscribeUrl = token === undefined ? null : links.unsubscribe(token);
  // Not in a header: some servers open what they find there, and mail programs end it without a question.
  const refusal = refusalTokenFor(encryption, to, content);
  const endUrl = refusal === undefined ? unsubscribeUrl : links.unsubscribe(refusal);
  return { id: row.id, to, ...layOut(content, links, endUrl), createdAt: row.created_at, unsubscribeUrl };
}

function readContent(encryption: Encryption, row: MailRow): MailContent {
  try {
    return contentOf(encryption, row);
  } catch (error) {
    throw new UnusableMail(`its content cannot be read: ${messageOf(error)}`, { cause: error });
  }
}

/** Returns the user's address; undefined if the user was removed. */
function addressOf(tx: Tx, userId: string): string | undefined {
  const user = tx.get(query.selectFrom('users').select('email').where('id', '=', userId));
  return user?.email.startsWith('removed:') === true ? undefined : user?.email;
}

function wanted(tx: Tx, whose: Whose, content: MailContent): MailContent | undefined {
  const items = itemsOf(content).filter((item) => isWanted(tx, whose, item));
  if (items.length === 0) return undefined;
  return content.kind === 'digest' ? { ...content, items } : content;
}

type Whose = Pick<MailRow, 'user_id' | 'address'>;

function isWanted(tx: Tx, { user_id: userId, address }: Whose, item: MailItem): boolean {
  if (item.kind === 'invite') return isOpen(tx, item.invite_id) && !refusesInvites(tx, address);
  if (item.kind === 'password_reset' || item.kind === 'sign_up') return isLinkOpen(tx, item.token);
  if (!('organization_id' in item) || userId === null) return true;
  const category = categoryOf(item);
  return isMember(tx, userId, item.organization_id) && !(isChoice(category) && isSwitchedOff(tx, userId, category));
}

function isLinkOpen(tx: Tx, token: string): boolean {
  const link = query.selectFrom('link_requests').select('id').where('token_hash', '=', hash('sha256', token));
  return tx.get(link.where('expires_at', '>', tx.now)) !== undefined;
}

/** Tells whether an invitation is to be mailed: not one of a suspended organization. */
function isOpen(tx: Tx, inviteId: string): boolean {
  const invite = query
    .selectFrom('invites')
    .innerJoin('organizations', 'organizations.id', 'invites.organization_id')
    .select('invites.id')
    .where('invites.id', '=', inviteId)
    .where('organizations.suspended_at', 'is', null);
  return tx.get(invite.where('expires_at', '>', tx.now)) !== undefined;
}

function isMember(tx: Tx, userId: string, organizationId: string): boolean {
  const membership = query.selectFrom('memberships').select('role').where('user_id', '=', userId);
  return tx.get(membership.where('organization_id', '=', organizationId)) !== undefined;
}
