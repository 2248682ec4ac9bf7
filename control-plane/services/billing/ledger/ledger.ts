import type { TransactionKind } from '../../../domain/money/money.js';
import type { Row } from '../../../store/schema.js';
import { query } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { getOrganization } from '../../organizations/organizations.js';
import { recordEvent } from '../../events/record.js';
import type { Platform } from '../../system/platform.js';
import { settleOrganizations } from '../settle/settle.js';

export interface LedgerEntry {
  organizationId: string;
  kind: Exclude<TransactionKind, 'charge'>;
  /** Added to the balance: a credit is positive, a debit negative. */
  amountMicro: number;
  reason: string | null;
  authorId: string | null;
  /** The id of the row; without one it gets a new one. */
  id?: string;
}

/**
 * Writes a ledger row, moves the balance by it and enforces the new balance. Usage up to now is settled before, so that it is charged
 * to the old balance. Refuses with ORGANIZATION_NOT_FOUND.
 */
export function appendEntry(
  platform: Platform,
  tx: Tx,
  entry: LedgerEntry,
): Row<'transactions'> & { balance_micro: number } {
  const { organizationId, amountMicro } = entry;
  settleOrganizations(platform, tx, [organizationId]);
  const balance_micro = getOrganization(tx, organizationId).balance_micro + amountMicro;
  const row: Row<'transactions'> = {
    id: entry.id ?? tx.id(),
    organization_id: organizationId,
    kind: entry.kind,
    amount_micro: amountMicro,
    instance_id: null,
    meter: null,
    hour: null,
    reason: entry.reason,
    author_id: entry.authorId,
    created_at: tx.now,
  };
  tx.run(query.insertInto('transactions').values(row));
  tx.count({ what: 'ledger', kind: row.kind });
  tx.run(query.updateTable('organizations').set({ balance_micro }).where('id', '=', organizationId));
  tx.run(
    query
      .insertInto('recent_entries')
      .values({ organization_id: organizationId, at: tx.now, amount_micro: amountMicro }),
  );
  tell(tx, row, balance_micro);
  settleOrganizations(platform, tx, [organizationId]);
  return { ...row, balance_micro };
}

function tell(tx: Tx, { id, organization_id, kind, amount_micro, reason }: Row<'transactions'>, balance_micro: number) {
  const subject = `transactions/${id}`;
  const money = { amount_micro, balance_micro };
  const isGiven = amount_micro > 0;
  if (kind === 'credit' || kind === 'charge') {
    const type = isGiven ? 'billing.credited' : 'billing.debited';
    return recordEvent(tx, organization_id, type, subject, { ...money, reason });
  }
  const types = {
    payment: 'billing.paid',
    refund: isGiven ? 'billing.refund_failed' : 'billing.refunded',
    dispute: isGiven ? 'billing.dispute_returned' : 'billing.dispute_debited',
  } as const;
  recordEvent(tx, organization_id, types[kind], subject, { ...money, payment_id: reason ?? '' });
}
