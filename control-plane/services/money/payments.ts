import type { SessionCaller } from '../../domain/caller.js';
import { checkRaisedBalance } from '../../domain/money.js';
import type { Checkout, PaymentEvent } from '../../domain/payment.js';
import type { Row } from '../../store/schema.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { getOrganization } from '../accounts/organizations.js';
import type { Platform } from '../platform.js';
import { heedDisputes } from './disputes.js';
import { enter } from './ledger.js';

type Payment = Row<'payments'>;

/**
 * Admins: a page on which the organisation tops its balance up. With an idempotency key, the same request is one page. Refuses
 * with CHECKOUT_UNAVAILABLE, UNAVAILABLE, VALIDATION_FAILED, IDEMPOTENCY_KEY_REUSED.
 */
export async function openCheckout(
  platform: Platform,
  caller: SessionCaller,
  request: { amount_micro: number },
  idempotencyKey?: string,
): Promise<Checkout> {
  const { organizationId } = caller;
  const { balance_micro } = platform.store.transact((tx) => getOrganization(tx, organizationId));
  checkRaisedBalance(balance_micro + request.amount_micro);
  return platform.payments.openCheckout({ organizationId, amountMicro: request.amount_micro, idempotencyKey });
}

/** What the provider has sent, signature and all. Refuses with SIGNATURE_INVALID and VALIDATION_FAILED. */
export function receiveEvent(platform: Platform, body: string, signature: string): void {
  const event = platform.payments.readEvent?.(body, signature, platform.clock.now());
  if (event) applyEvent(platform, event);
}

/**
 * Adds what an event tells to what is known of its payment, and books what the ledger does not have yet. So an event that is
 * told again changes nothing, and the order in which events come makes no difference.
 */
export function applyEvent(platform: Platform, event: PaymentEvent): void {
  platform.store.transact((tx) => {
    const payment = knownPayment(tx, event.paymentId);
    if (event.kind === 'dispute') noteDispute(tx, event);
    else if (event.kind === 'refunded') {
      const refunded_micro = Math.max(payment.refunded_micro, event.amountMicro);
      save(tx, payment, { refunded_micro });
    } else if (payment.organization_id === null && isOrganization(tx, event.organizationId)) {
      save(tx, payment, { organization_id: event.organizationId, paid_micro: event.amountMicro });
    }
    bookPayment(platform, tx, knownPayment(tx, event.paymentId));
  });
}

/** What is known of a payment; nothing, when it is heard of for the first time. */
function knownPayment(tx: Tx, id: string): Payment {
  const known = tx.get(query.selectFrom('payments').selectAll().where('id', '=', id));
  if (known) return known;
  const told = { paid_micro: 0, refunded_micro: 0 };
  const booked = { credited_micro: 0, refund_debited_micro: 0, dispute_debited_micro: 0 };
  const payment = { id, organization_id: null, ...told, ...booked, created_at: tx.now };
  tx.run(query.insertInto('payments').values(payment));
  return payment;
}

function save(tx: Tx, { id }: Payment, changes: Partial<Payment>): void {
  tx.run(query.updateTable('payments').set(changes).where('id', '=', id));
}

function isOrganization(tx: Tx, id: string): boolean {
  return tx.get(query.selectFrom('organizations').select('id').where('id', '=', id)) !== undefined;
}

/** One that has been closed is not opened again by what was told of it before. */
function noteDispute(
  tx: Tx,
  { disputeId: id, paymentId, state, amountMicro }: PaymentEvent & { kind: 'dispute' },
): void {
  const known = tx.get(query.selectFrom('disputes').selectAll().where('id', '=', id));
  if (!known) {
    const dispute = {
      id,
      organization_id: null,
      payment_id: paymentId,
      state,
      amount_micro: amountMicro,
      opened_at: tx.now,
    };
    tx.run(query.insertInto('disputes').values(dispute));
  } else if (state !== 'open' && known.state !== 'won' && known.state !== 'lost') {
    tx.run(query.updateTable('disputes').set({ state, amount_micro: amountMicro }).where('id', '=', id));
  }
}

/** Never takes back more than was paid. What was told of a payment that is not known yet waits until it is. */
function bookPayment(platform: Platform, tx: Tx, payment: Payment): void {
  const { id, organization_id: organizationId, paid_micro, refunded_micro, credited_micro } = payment;
  if (organizationId === null) return;
  tx.run(query.updateTable('disputes').set({ organization_id: organizationId }).where('payment_id', '=', id));
  const refund_debited_micro = Math.min(refunded_micro, paid_micro - payment.dispute_debited_micro);
  const dispute_debited_micro = Math.min(lostOf(tx, id), paid_micro - refund_debited_micro);
  const moves = [
    { kind: 'payment', amountMicro: paid_micro - credited_micro },
    { kind: 'refund', amountMicro: payment.refund_debited_micro - refund_debited_micro },
    { kind: 'dispute', amountMicro: payment.dispute_debited_micro - dispute_debited_micro },
  ] as const;
  for (const { kind, amountMicro } of moves) {
    if (amountMicro !== 0) enter(platform, tx, { organizationId, kind, amountMicro, reason: id, authorId: null });
  }
  save(tx, payment, { credited_micro: paid_micro, refund_debited_micro, dispute_debited_micro });
  heedDisputes(platform, tx, getOrganization(tx, organizationId));
}

function lostOf(tx: Tx, paymentId: string): number {
  const lost = query.selectFrom('disputes').select('amount_micro').where('payment_id', '=', paymentId);
  return tx.all(lost.where('state', '=', 'lost')).reduce((sum, { amount_micro }) => sum + amount_micro, 0);
}
