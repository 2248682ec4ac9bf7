import type { Payment } from '../models.js';

/** Returns how a payment stands: a shape and its words. */
export function paymentState(payment: Payment) {
  const { failed_at, organization_id, paid_micro, refund_debited_micro, dispute_debited_micro } = payment;
  if (failed_at !== null) return { shape: 'square', words: 'failed' } as const;
  if (organization_id === null) return { shape: 'half', words: 'not reported yet, only a refund or dispute' } as const;
  if (dispute_debited_micro > 0) return { shape: 'square', words: 'disputed and lost' } as const;
  if (refund_debited_micro > 0)
    return { shape: 'ring', words: refund_debited_micro < paid_micro ? 'partly refunded' : 'refunded' } as const;
  return { shape: 'dot', words: 'in the ledger' } as const;
}
