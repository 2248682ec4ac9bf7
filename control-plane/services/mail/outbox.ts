import { DAY_MS } from '../../../shared/time.js';
import {
  MAIL_LIMITS,
  TURN_MS,
  categoryOf,
  urgencyOf,
  type MailContent,
  type MailItem,
  type MailKind,
  type MailState,
} from '../../domain/mail/mail.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, insertRow, query, sql, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Core } from '../system/platform.js';
import type { Encryption } from '../secrets/encryption.js';

export type MailRow = Row<'mails'>;

/** For so long finished mails are kept, without their content, for questions. */
const KEPT_MS = 7 * DAY_MS;

export interface NewMail {
  /** Null: the mail is for an address. */
  userId: string | null;
  address: string;
  /** The organization that an invitation is to; null for other mails. */
  organizationId: string | null;
  /** What the mail is about: for one person there is only one mail about it. */
  about: string;
  item: MailItem;
  /** Whose act or organization it is of; absent: no one's. */
  sender?: string;
}

/**
 * Writes a mail that is to be sent, unless there is one about the same already, or {@link MAIL_LIMITS}.waiting mails wait for this person.
 * Returns whether it did. Must only be called where the control plane sends mails.
 */
export function queueMail({ encryption }: Pick<Core, 'encryption'>, tx: Tx, mail: NewMail): boolean {
  const queue = queueOf(mail);
  if (tx.all(openIn({ queue })).length >= MAIL_LIMITS.waiting) return false;
  const { userId, address, organizationId, about, item, sender = null } = mail;
  const known = tx.get(mailAbout({ queue, about }));
  if (known) return false;
  const whose = { user_id: userId, address, organization_id: organizationId };
  insertMail(encryption, tx, { ...whose, queue, about, sender, kind: item.kind }, item);
  tx.nudge('mail');
  return true;
}

/** Writes the row of a new mail. */
export function insertMail(
  encryption: Encryption,
  tx: Tx,
  row: Pick<MailRow, 'user_id' | 'address' | 'organization_id' | 'queue' | 'about' | 'sender'> & { kind: MailKind },
  content: MailContent,
): void {
  const never = { attempts: 0, unanswered: 0, attempted_at: null, finished_at: null };
  const times = { created_at: tx.now, next_attempt_at: tx.now };
  const place = { urgency: urgencyOf(content), turn: nextTurn(tx, row.sender) };
  const content_encrypted = encryption.encrypt('mail.content', content);
  tx.run(insertRow('mails', { id: tx.id(), ...row, state: 'queued', content_encrypted, ...never, ...times, ...place }));
}

/** Returns when a further mail of a sender has its turn: each after those of this sender that wait, and so between those of others. */
function nextTurn(tx: Tx, sender: string | null): number {
  const last = sender === null ? undefined : tx.get(lastTurnOf({ sender }));
  return last ? Math.max(tx.now, last.turn + TURN_MS) : tx.now;
}

/** Returns what a mail says. Throws if it was encrypted with another key. */
export function contentOf(encryption: Encryption, { id, content_encrypted }: MailRow): MailContent {
  if (!content_encrypted) throw new Error(`the mail ${id} has no content any more`);
  return encryption.decrypt('mail.content', content_encrypted) as MailContent;
}

/** Ends a mail and erases what it says. */
export function finishMail(tx: Tx, id: string, state: Exclude<MailState, 'queued' | 'held'>): void {
  tx.run(updateRows('mails', { state, content_encrypted: null, finished_at: tx.now }, { id }));
}

/** Returns which mails count together against too many in an hour: a flood of others must not hold up those about security. */
function queueOf({ userId, address, item }: NewMail): string {
  // Of links there are few to an address, and none may wait for others.
  if (LINKS.includes(item.kind)) return `${address.toLowerCase()}/${item.kind}`;
  const category = categoryOf(item);
  const queue = category === 'security' || category === 'invites' ? category : 'others';
  return `${userId ?? address.toLowerCase()}/${queue}`;
}

/** Mails that an address gets because somebody asks for a link to be sent there. */
export const LINKS: readonly MailKind[] = ['password_reset', 'sign_up', 'sign_up_exists'];

/** Forgets the mails of a user who is removed. */
export function forgetMailsOf(tx: Tx, userId: string): void {
  for (const table of ['mails', 'mail_preferences', 'known_networks'] as const)
    tx.run(query.deleteFrom(table).where('user_id', '=', userId));
}

/** Gives up all mails that wait, because the key that encrypts them is lost. */
export function forgetMails(tx: Tx): void {
  const given = { state: 'failed' as const, content_encrypted: null, finished_at: tx.now };
  tx.run(query.updateTable('mails').set(given).where('finished_at', 'is', null));
}

/** Deletes mails that were finished a week ago, at most `most`. Returns the number. */
export function purgeMails(tx: Tx, most: number): number {
  const ids = tx.all(finishedBefore({ before: tx.now - KEPT_MS, most })).map(({ id }) => id);
  if (ids.length > 0) tx.run(query.deleteFrom('mails').where('id', 'in', ids));
  return ids.length;
}

const openIn = compileOnce(({ queue }: { queue: string }) =>
  query
    .selectFrom('mails')
    .select('id')
    .where('queue', '=', queue)
    .where('finished_at', 'is', null)
    .limit(sql.lit(MAIL_LIMITS.waiting)),
);

const mailAbout = compileOnce(({ queue, about }: { queue: string; about: string }) =>
  query.selectFrom('mails').select('id').where('queue', '=', queue).where('about', '=', about),
);

const lastTurnOf = compileOnce(({ sender }: { sender: string }) =>
  query
    .selectFrom('mails')
    .select('turn')
    .where('sender', '=', sender)
    .where('finished_at', 'is', null)
    .orderBy('turn', 'desc')
    .limit(sql.lit(1)),
);

const finishedBefore = compileOnce(({ before, most }: { before: number; most: number }) =>
  query.selectFrom('mails').select('id').where('finished_at', '<=', before).orderBy('finished_at').limit(most),
);
