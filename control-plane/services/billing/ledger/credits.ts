import { createHash } from 'node:crypto';
import { anOperator } from '../../../domain/act.js';
import type { Operator } from '../../../domain/caller.js';
import { checkChangedBalance } from '../../../domain/money/money.js';
import { Refusal, invalidField } from '../../../domain/refusal.js';
import type { Row } from '../../../store/schema.js';
import { query } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { getOrganization } from '../../organizations/organizations.js';
import { recordAct } from '../../system/acts.js';
import { recordAudit } from '../../system/audit.js';
import type { Platform } from '../../system/platform.js';
import { appendEntry } from './ledger.js';

interface CreditRequest {
  amount_micro: number;
  reason: string;
}

/** A row of the ledger, and the balance of its organization. */
type Credit = Row<'transactions'> & { balance_micro: number };

/**
 * Adds a credit, or a debit if the amount is negative, to an organization's balance for an operator. A debit that empties the balance
 * stops instances like any other. The same request with the same idempotency key returns the first credit, with the present balance.
 * Refuses with ORGANIZATION_NOT_FOUND, with VALIDATION_FAILED if the amount is zero or the balance would exceed its bounds, and with
 * IDEMPOTENCY_KEY_REUSED.
 */
export function grantCredit(
  platform: Platform,
  operator: Operator,
  organizationId: string,
  request: CreditRequest,
  idempotencyKey?: string,
): { credit: Credit; replayed: boolean } {
  const id = idempotencyKey === undefined ? undefined : idOf(organizationId, idempotencyKey);
  return platform.store.transact((tx) => {
    const { amount_micro: amountMicro, reason } = request;
    if (amountMicro === 0) throw invalidField('amount_micro', 'must not be zero');
    const earlier = id === undefined ? undefined : findEarlier(tx, id, request);
    if (earlier) return { credit: earlier, replayed: true };
    const credit = appendEntry(platform, tx, {
      organizationId,
      kind: 'credit',
      amountMicro,
      reason,
      authorId: operator.userId,
      ...(id === undefined ? {} : { id }),
    });
    checkChangedBalance(credit.balance_micro);
    recordAudit(tx, operator, 'organization.credit', organizationId, { ...request });
    recordAct(tx, organizationId, anOperator(reason), 'credit.grant', `transactions/${credit.id}`);
    return { credit, replayed: false };
  });
}

/** Returns the id of the credit that is made with this key: so the ledger itself knows the keys, as long as it has the credits. */
function idOf(organizationId: string, key: string): string {
  const digits = createHash('sha256').update(`credit ${organizationId} ${key}`).digest('hex');
  // A UUID of version 8: its content is up to us.
  return digits.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-8$3-8$4-$5');
}

function findEarlier(tx: Tx, id: string, { amount_micro, reason }: CreditRequest): Credit | undefined {
  const row = tx.get(query.selectFrom('transactions').selectAll().where('id', '=', id));
  if (!row) return undefined;
  if (row.amount_micro !== amount_micro || row.reason !== reason)
    throw new Refusal('IDEMPOTENCY_KEY_REUSED', 'this Idempotency-Key was sent with another credit; use a new one');
  return { ...row, balance_micro: getOrganization(tx, row.organization_id).balance_micro };
}
