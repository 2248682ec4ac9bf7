import { actorOf } from '../../../domain/act.js';
import type { SessionCaller } from '../../../domain/caller.js';
import { checkChangedBalance } from '../../../domain/money/money.js';
import type { Checkout, PaymentEvent } from '../../../domain/money/payment.js';
import type { Row } from '../../../store/schema.js';
import { query, sql } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { getOrganization } from '../../organizations/organizations.js';
import { recordEvent } from '../../events/record.js';
import { recordAct } from '../../system/acts.js';
import { pageOf, type Page, type PageRequest } from '../../system/pages.js';
import type { Core, Platform } from '../../system/platform.js';
import { applyDisputeFreeze } from './disputes.js';
import { appendEntry } from '../ledger/ledger.js';

type Payment = Row<'payments'>;

/**
 * Opens, for an admin, a page of the payment provider to top up the balance. Requests with the same idempotency key get the same page.
 * Refuses with CHECKOUT_UNAVAILABLE, UNAVAILABLE, VALIDATION_FAILED and IDEMPOTENCY_KEY_REUSED.
 */
export async function openCheckout(
  platform: Platform,
  caller: SessionCaller,
  request: { amount_micro: number },
  idempotencyKey?: string,
): Promise<Checkout> {
  const { organizationId } = caller;
  const { balanceMicro, address } = platform.store.transact((tx) => ({
    balanceMicro: getOrganization(tx, organizationId).balance_micro,
    address: tx.address,
  }));
  checkChangedBalance(balanceMicro + request.amount_micro);
  const checkout = await platform.payments.openCheckout({
    organizationId,
    amountMicro: request.amount_micro,
    idempotencyKey,
  });
  if (!checkout.replayed)
    platform.store.transact((tx) =>
      recordAct(tx, organizationId, actorOf(caller), 'checkout.create', `orgs/${organizationId}`, null, address),
    );
  return checkout;
}

/** Checks and applies a webhook event of the payment provider. Refuses with SIGNATURE_INVALID and VALIDATION_FAILED. */
export function receiveEvent(platform: Platform, body: string, signature: string): void {
  const event = platform.payments.webhook?.readEvent(body, signature, platform.clock.now());
  if (event) applyEvent(platform, event);
}

/**
 * Stores what an event says of its payment, and posts the difference to what the ledger already has. So a repeated event changes
 * nothing, and events can arrive in any order.
 */
export function applyEvent(platform: Platform, event: PaymentEvent): void {
  platform.store.transact((tx) => {
    const payment = knownPayment(platform, tx, event.paymentId);
    if (event.kind === 'dispute') noteDispute(tx, event);
    else if (event.kind === 'refund') noteRefund(tx, event);
    else if (event.kind === 'failed') noteFailure(tx, payment, event);
    else if (event.kind === 'refunded') {
      const refunded_micro = Math.max(payment.refunded_micro, event.amountMicro);
      save(tx, payment, { refunded_micro });
    } else if (payment.organization_id === null && isOrganization(tx, event.organizationId)) {
      save(tx, payment, { organization_id: event.organizationId, paid_micro: event.amountMicro });
    }
    bookPayment(platform, tx, knownPayment(platform, tx, event.paymentId));
  });
}

export type PaymentDetails = Payment & { position: number; organization_name: string | null };

/** Lists payments for an operator, newest first, each with the amounts that the provider reported and those in the ledger. */
export function listPayments(core: Core, request: PageRequest): Page<PaymentDetails> {
  return core.store.transact((tx) => {
    const rows = query
      .selectFrom('payments')
      .leftJoin('organizations', 'organizations.id', 'payments.organization_id')
      .selectAll('payments')
      .select(['organizations.name as organization_name', sql<number>`payments.rowid`.as('position')]);
    return pageOf(tx, rows, request, { by: { 'payments.rowid': 'desc' }, keyOf: ({ position }) => [position] });
  });
}

/** Returns the row of a payment. Inserts an empty one for a payment that no event has named before. */
function knownPayment({ payments }: Platform, tx: Tx, id: string): Payment {
  const known = tx.get(query.selectFrom('payments').selectAll().where('id', '=', id));
  if (known) return known;
  const told = { paid_micro: 0, refunded_micro: 0 };
  const booked = { credited_micro: 0, refund_debited_micro: 0, dispute_debited_micro: 0 };
  const payment = {
    id,
    provider: payments.name,
    organization_id: null,
    ...told,
    ...booked,
    created_at: tx.now,
    failed_at: null,
  };
  tx.run(query.insertInto('payments').values(payment));
  return payment;
}

function save(tx: Tx, { id }: Payment, changes: Partial<Payment>): void {
  tx.run(query.updateTable('payments').set(changes).where('id', '=', id));
}

function isOrganization(tx: Tx, id: string): boolean {
  return tx.get(query.selectFrom('organizations').select('id').where('id', '=', id)) !== undefined;
}

/** Stores a dispute. An event from before a decision does not open the dispute again; of several decisions the newest counts. */
function noteDispute(tx: Tx, event: PaymentEvent & { kind: 'dispute' }): void {
  const { disputeId: id, paymentId: payment_id, state, amountMicro: amount_micro } = event;
  const decided_at = state === 'open' ? null : event.at;
  const known = tx.get(query.selectFrom('disputes').selectAll().where('id', '=', id));
  if (!known) {
    const dispute = { id, organization_id: null, payment_id, state, amount_micro, opened_at: tx.now, decided_at };
    tx.run(query.insertInto('disputes').values(dispute));
  } else if (decided_at !== null && isNewer(decided_at, state, known)) {
    tx.run(query.updateTable('disputes').set({ state, amount_micro, decided_at }).where('id', '=', id));
  }
}

/** Tells whether a decision replaces the known one. Of two decisions in the same second, the one for the renter counts. */
function isNewer(decidedAt: number, state: string, known: Row<'disputes'>): boolean {
  if (known.decided_at === null || decidedAt > known.decided_at) return true;
  return decidedAt === known.decided_at && state === 'won';
}

/** Tells the organization once that a payment of it has failed. */
function noteFailure(tx: Tx, payment: Payment, event: PaymentEvent & { kind: 'failed' }): void {
  const { organizationId, paymentId: payment_id, amountMicro: amount_micro } = event;
  if (payment.failed_at !== null || payment.organization_id !== null || !isOrganization(tx, organizationId)) return;
  save(tx, payment, { failed_at: tx.now });
  const { balance_micro } = getOrganization(tx, organizationId);
  recordEvent(tx, organizationId, 'billing.payment_failed', 'billing', { amount_micro, balance_micro, payment_id });
}

/** Stores a refund. A late event from before its failure does not undo the failure. */
function noteRefund(tx: Tx, event: PaymentEvent & { kind: 'refund' }): void {
  const { refundId: id, paymentId: payment_id, state, amountMicro: amount_micro } = event;
  const refunds = query.insertInto('refunds').values({ id, payment_id, state, amount_micro });
  tx.run(
    refunds.onConflict((known) =>
      state === 'failed' ? known.column('id').doUpdateSet({ state }) : known.column('id').doNothing(),
    ),
  );
}

/** Returns the refunded amount of a payment: all refunds, less those that failed. */
function refundedOf(tx: Tx, { id, refunded_micro }: Payment): number {
  const refunds = tx.all(query.selectFrom('refunds').selectAll().where('payment_id', '=', id));
  const sum = (rows: typeof refunds) => rows.reduce((total, { amount_micro }) => total + amount_micro, 0);
  const failed = refunds.filter(({ state }) => state === 'failed');
  return Math.max(Math.max(refunded_micro, sum(refunds)) - sum(failed), 0);
}

/**
 * Posts to the ledger what a payment lacks there. Refunds and lost disputes never debit more than was paid, and a debit whose refund
 * failed or whose dispute was won later is credited again. Events of a payment wait until its organization is known.
 */
function bookPayment(platform: Platform, tx: Tx, payment: Payment): void {
  const { id, organization_id: organizationId, paid_micro, credited_micro } = payment;
  if (organizationId === null) return;
  tx.run(query.updateTable('disputes').set({ organization_id: organizationId }).where('payment_id', '=', id));
  const lost = lostOf(tx, id);
  const stillLost = Math.min(payment.dispute_debited_micro, lost);
  const refund_debited_micro = Math.min(refundedOf(tx, payment), paid_micro - stillLost);
  const dispute_debited_micro = Math.min(lost, paid_micro - refund_debited_micro);
  const moves = [
    { kind: 'payment' as const, amountMicro: paid_micro - credited_micro },
    { kind: 'refund' as const, amountMicro: payment.refund_debited_micro - refund_debited_micro },
    { kind: 'dispute' as const, amountMicro: payment.dispute_debited_micro - dispute_debited_micro },
  ];
  // Credits come first, so that no debit empties the balance and stops instances in between.
  moves.sort((a, b) => b.amountMicro - a.amountMicro);
  for (const { kind, amountMicro } of moves) {
    if (amountMicro !== 0) appendEntry(platform, tx, { organizationId, kind, amountMicro, reason: id, authorId: null });
  }
  save(tx, payment, { credited_micro: paid_micro, refund_debited_micro, dispute_debited_micro });
  applyDisputeFreeze(tx, getOrganization(tx, organizationId));
}

function lostOf(tx: Tx, paymentId: string): number {
  const lost = query.selectFrom('disputes').select('amount_micro').where('payment_id', '=', paymentId);
  return tx.all(lost.where('state', '=', 'lost')).reduce((sum, { amount_micro }) => sum + amount_micro, 0);
}
