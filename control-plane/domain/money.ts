import { invalidField } from './refusal.js';

/** What moves a balance. A charge is booked per instance, meter and UTC hour. */
export const TRANSACTION_KINDS = ['credit', 'payment', 'refund', 'dispute', 'charge'] as const;
export type TransactionKind = (typeof TRANSACTION_KINDS)[number];

export type Meter = 'gpu' | 'disk';

/** A billion dollars: far below what a number holds exactly, so that every sum of money is exact. */
export const MAX_BALANCE_MICRO = 1_000_000_000_000_000;

/** Refuses with VALIDATION_FAILED an amount that would bring a balance to more than {@link MAX_BALANCE_MICRO}. */
export function checkRaisedBalance(balanceMicro: number): void {
  if (balanceMicro <= MAX_BALANCE_MICRO) return;
  throw invalidField('amount_micro', `raises the balance above ${MAX_BALANCE_MICRO} micro-dollars, which is the most`);
}
