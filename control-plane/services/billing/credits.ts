import { anOperator } from '../../domain/act.js';
import type { Operator } from '../../domain/caller.js';
import { checkChangedBalance } from '../../domain/money.js';
import { invalidField } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { recordAct } from '../system/acts.js';
import { recordAudit } from '../system/audit.js';
import type { Platform } from '../system/platform.js';
import { appendEntry } from './ledger.js';

/**
 * Adds a credit, or a debit if the amount is negative, to an organization's balance for an operator. A debit that empties the balance
 * stops instances like any other. Refuses with ORGANIZATION_NOT_FOUND, and with VALIDATION_FAILED if the amount is zero or the
 * balance would exceed its bounds.
 */
export function grantCredit(
  platform: Platform,
  operator: Operator,
  organizationId: string,
  request: { amount_micro: number; reason: string },
): Row<'transactions'> & { balance_micro: number } {
  return platform.store.transact((tx) => {
    const { amount_micro: amountMicro, reason } = request;
    if (amountMicro === 0) throw invalidField('amount_micro', 'must not be zero');
    const credit = appendEntry(platform, tx, {
      organizationId,
      kind: 'credit',
      amountMicro,
      reason,
      authorId: operator.userId,
    });
    checkChangedBalance(credit.balance_micro);
    recordAudit(tx, operator, 'organization.credit', organizationId, request);
    recordAct(tx, organizationId, anOperator(reason), 'credit.grant', `transactions/${credit.id}`);
    return credit;
  });
}
