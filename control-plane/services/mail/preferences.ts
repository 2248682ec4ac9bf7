import type { AccountCaller } from '../../domain/caller.js';
import { MAIL_CHOICES, type MailChoice } from '../../domain/mail/mail.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Core } from '../system/platform.js';
import { refusesInvites, setInviteMails } from './refused-invites.js';
import { readUnsubscribeToken, type Unsubscription } from './unsubscribe.js';

/**
 * The categories that a person can switch off: whether mails of it are sent. Invitations go by the address, also of those without an
 * account.
 */
export type MailChoices = Record<MailChoice | 'invites', boolean>;

type User = Pick<AccountCaller, 'userId' | 'email'>;

/** Returns which mails the user gets. */
export function getMailChoices({ store }: Core, user: User): MailChoices {
  return store.transact((tx) => choicesOf(tx, user));
}

/** Changes which mails the user gets; a category that `changes` lacks stays as it is. */
export function changeMailChoices({ store }: Core, user: User, changes: Partial<MailChoices>): MailChoices {
  return store.transact((tx) => {
    for (const category of MAIL_CHOICES) choose(tx, user.userId, category, changes[category]);
    if (changes.invites !== undefined) setInviteMails(tx, user.email, changes.invites);
    return choicesOf(tx, user);
  });
}

/**
 * Ends the mails that an unsubscribe token names, and returns which. Refuses with NOT_FOUND a token that this control plane has not made.
 */
export function unsubscribe({ store, encryption }: Core, token: string): Unsubscription {
  const ended = readUnsubscribeToken(encryption, token);
  store.transact((tx) => {
    if ('invitesTo' in ended) return setInviteMails(tx, ended.invitesTo, false);
    for (const category of ended.categories) choose(tx, ended.userId, category, false);
  });
  return ended;
}

/** Tells whether the user has switched this category off. */
export function isSwitchedOff(tx: Tx, userId: string, category: MailChoice): boolean {
  const chosen = query.selectFrom('mail_preferences').select('enabled').where('user_id', '=', userId);
  return tx.get(chosen.where('category', '=', category))?.enabled === 0;
}

function choicesOf(tx: Tx, { userId, email }: User): MailChoices {
  const isOn = (category: MailChoice) => !isSwitchedOff(tx, userId, category);
  return {
    low_balance: isOn('low_balance'),
    disks: isOn('disks'),
    money: isOn('money'),
    caps: isOn('caps'),
    notices: isOn('notices'),
    invites: !refusesInvites(tx, email),
  };
}

function choose(tx: Tx, userId: string, category: MailChoice, isOn: boolean | undefined): void {
  if (isOn === undefined || isOn !== isSwitchedOff(tx, userId, category)) return;
  const row = { user_id: userId, category, enabled: isOn ? (1 as const) : (0 as const), changed_at: tx.now };
  const { enabled, changed_at } = row;
  tx.run(
    query
      .insertInto('mail_preferences')
      .values(row)
      .onConflict((conflict) => conflict.columns(['user_id', 'category']).doUpdateSet({ enabled, changed_at })),
  );
}
