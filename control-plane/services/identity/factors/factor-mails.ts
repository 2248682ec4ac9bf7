import type { MailItem } from '../../../domain/mail/mail.js';
import type { Tx } from '../../../store/store.js';
import { queueMail } from '../../mail/outbox.js';
import type { Platform } from '../../system/platform.js';

type FactorMail = Extract<
  MailItem,
  { kind: 'second_factor_added' | 'second_factor_removed' | 'second_factor_removal' }
>;

/** Mails a user what happens to its second factors. */
export function tellFactor(
  platform: Platform,
  tx: Tx,
  { userId, email }: { userId: string; email: string },
  item: FactorMail,
): void {
  if (!platform.mail) return;
  queueMail(platform, tx, { userId, address: email, organizationId: null, about: `factor ${tx.id()}`, item });
}
