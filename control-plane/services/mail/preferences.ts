import { MAIL_CHOICES, type MailChoice } from '../../domain/mail.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Platform } from '../system/platform.js';
import { readUnsubscribeToken } from './unsubscribe.js';

/** The categories that a person can switch off: whether mails of it are sent. */
export type MailChoices = Record<MailChoice, boolean>;

/** Returns which mails the user gets. */
export function getMailChoices({ store }: Platform, userId: string): MailChoices {
  return store.transact((tx) => choicesOf(tx, userId));
}

/** Changes which mails the user gets; a category that `changes` lacks stays as it is. */
export function changeMailChoices({ store }: Platform, userId: string, changes: Partial<MailChoices>): MailChoices {
  return store.transact((tx) => {
    for (const category of MAIL_CHOICES) choose(tx, userId, category, changes[category]);
    return choicesOf(tx, userId);
  });
}

/** Ends the mails that an unsubscribe token names. Refuses with NOT_FOUND a token that this control plane has not made. */
export function unsubscribe({ store, encryption }: Platform, token: string): void {
  const { userId, categories } = readUnsubscribeToken(encryption, token);
  store.transact((tx) => {
    for (const category of categories) choose(tx, userId, category, false);
  });
}

/** Tells whether the user has switched this category off. */
export function isSwitchedOff(tx: Tx, userId: string, category: MailChoice): boolean {
  const chosen = query.selectFrom('mail_preferences').select('enabled').where('user_id', '=', userId);
  return tx.get(chosen.where('category', '=', category))?.enabled === 0;
}

function choicesOf(tx: Tx, userId: string): MailChoices {
  const isOn = (category: MailChoice) => !isSwitchedOff(tx, userId, category);
  return {
    low_balance: isOn('low_balance'),
    disks: isOn('disks'),
    money: isOn('money'),
    caps: isOn('caps'),
    notices: isOn('notices'),
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
