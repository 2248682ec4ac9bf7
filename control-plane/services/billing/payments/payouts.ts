import type { PayoutEntry } from '../../../domain/money/payment.js';
import { Refusal } from '../../../domain/refusal.js';
import { query } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { getOrganization } from '../../organizations/organizations.js';
import type { Page, PageRequest } from '../../system/pages.js';
import type { Platform } from '../../system/platform.js';

/** An entry of a payout, compared with the ledger. */
export interface ReconciledEntry extends PayoutEntry {
  /** The organization that paid; null if the entry belongs to no known payment. */
  organization_id: string | null;
  organization_name: string | null;
  /** Whether the ledger has the entry, too; null if it belongs to no known payment. */
  in_ledger: boolean | null;
}

const PAGE = 100;

/**
 * Lists, for an operator, the entries of a payout of the payment provider, each compared with the ledger, 100 a page. Refuses with
 * CHECKOUT_UNAVAILABLE if no payment provider is set up, and with NOT_FOUND, UNAVAILABLE and VALIDATION_FAILED.
 */
export async function reconcilePayout(
  { payments, store }: Platform,
  payoutId: string,
  { limit = PAGE, cursor }: PageRequest,
): Promise<Page<ReconciledEntry>> {
  if (!payments.readPayout)
    throw new Refusal('CHECKOUT_UNAVAILABLE', 'this control plane has no payment provider, so there are no payouts');
  const { entries, next } = await payments.readPayout(payoutId, limit, cursor);
  return { items: store.transact((tx) => entries.map((entry) => reconcile(tx, entry))), next_cursor: next };
}

function reconcile(tx: Tx, entry: PayoutEntry): ReconciledEntry {
  const payment =
    entry.paymentId === null
      ? undefined
      : tx.get(query.selectFrom('payments').selectAll().where('id', '=', entry.paymentId));
  if (!payment?.organization_id || entry.kind === 'other')
    return { ...entry, organization_id: null, organization_name: null, in_ledger: null };
  const organization_id = payment.organization_id;
  const in_ledger =
    entry.kind === 'payment'
      ? payment.credited_micro === entry.amountMicro
      : isKnown(tx, entry, payment.refunded_micro);
  return { ...entry, organization_id, organization_name: getOrganization(tx, organization_id).name, in_ledger };
}

/** Tells whether the ledger has an entry of a refund or dispute. It has the money of a dispute only once that is decided. */
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
