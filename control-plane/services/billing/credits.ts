import type { Operator } from '../../domain/caller.js';
import { checkChangedBalance } from '../../domain/money.js';
import { invalidField } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { recordAudit } from '../system/audit.js';
import type { Platform } from '../system/platform.js';
import { appendEntry } from './ledger.js';

/**
 * An operator grants credit, or takes it back where the amount is negative, with a reason and an author. What follows from a balance of
 * nothing follows from that, too. Refuses with ORGANIZATION_NOT_FOUND, and with VALIDATION_FAILED what no
 * balance may come to.
 */
export function grantCredit(
  platform: Platform,
  operator: Operator,
  organizationId: string,
  request: { amount_micro: number; reason: string },
): Row<'transactions'> & { balance_micro: number } {
  return platform.store.transact((tx) => {
    const { amount_micro: amountMicro, reason } = request;
    if (amountMicro === 0) throw invalidField('amount_micro', 'is zero');
    const credit = appendEntry(platform, tx, {
      organizationId,
      kind: 'credit',
      amountMicro,
      reason,
      authorId: operator.userId,
    });
    checkChangedBalance(credit.balance_micro);
    recordAudit(tx, operator, 'organization.credit', organizationId, request);
    return credit;
  });
}
