import type { PayoutEntry } from '../../domain/payment.js';
import { Refusal } from '../../domain/refusal.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Page, PageRequest } from '../system/pages.js';
import type { Platform } from '../system/platform.js';

/** An entry of a payout, held against the ledger. */
export interface ReconciledEntry extends PayoutEntry {
  /** Whose payment it is; null: none that is known here. */
  organization_id: string | null;
  /** Whether the ledger has it, too; null: it belongs to no payment that is known here. */
  in_ledger: boolean | null;
}

const PAGE = 100;

/**
 * Operators: what went into a payout of the provider, each entry held against the ledger, a hundred at most. Refuses with
 * CHECKOUT_UNAVAILABLE where nothing is paid here, NOT_FOUND, UNAVAILABLE, VALIDATION_FAILED.
 */
export async function reconcilePayout(
  { payments, store }: Platform,
  payoutId: string,
  { limit = PAGE, cursor }: PageRequest,
): Promise<Page<ReconciledEntry>> {
  if (!payments.readPayout) throw new Refusal('CHECKOUT_UNAVAILABLE', 'no payments are taken here, and none paid out');
  const { entries, next } = await payments.readPayout(payoutId, limit, cursor);
  return { items: store.transact((tx) => entries.map((entry) => reconcile(tx, entry))), next_cursor: next };
}

function reconcile(tx: Tx, entry: PayoutEntry): ReconciledEntry {
  const payment =
    entry.paymentId === null
      ? undefined
      : tx.get(query.selectFrom('payments').selectAll().where('id', '=', entry.paymentId));
  if (!payment?.organization_id || entry.kind === 'other') return { ...entry, organization_id: null, in_ledger: null };
  const in_ledger =
    entry.kind === 'payment'
      ? payment.credited_micro === entry.amountMicro
      : isKnown(tx, entry, payment.refunded_micro);
  return { ...entry, organization_id: payment.organization_id, in_ledger };
}

/** Money that a dispute has moved is in the ledger once the dispute is decided. */
function isKnown(tx: Tx, { kind, sourceId, amountMicro }: PayoutEntry, refundedMicro: number): boolean {
  const isGivenBack = amountMicro > 0;
  if (kind === 'dispute') {
    const dispute = tx.get(
      query
        .selectFrom('disputes')
        .select('state')
        .where('id', '=', sourceId ?? ''),
    );
    return dispute?.state === 'won' || (dispute?.state === 'lost' && !isGivenBack);
  }
  const refund = tx.get(
    query
      .selectFrom('refunds')
      .select('state')
      .where('id', '=', sourceId ?? ''),
  );
  if (isGivenBack) return refund?.state === 'failed';
  return refund !== undefined || refundedMicro >= -amountMicro;
}
