import { invalidField } from './refusal.js';

/** What moves a balance. A charge is booked per instance, meter and UTC hour. */
export const TRANSACTION_KINDS = ['credit', 'payment', 'refund', 'dispute', 'charge'] as const;
export type TransactionKind = (typeof TRANSACTION_KINDS)[number];

export type Meter = 'gpu' | 'disk';

/** A billion dollars: far below what a number holds exactly, so that every sum of money is exact. */
export const MAX_BALANCE_MICRO = 1_000_000_000_000_000;

/** Refuses with VALIDATION_FAILED an amount that would bring a balance to more than {@link MAX_BALANCE_MICRO}, or so far below zero. */
export function checkChangedBalance(balanceMicro: number): void {
  if (Math.abs(balanceMicro) <= MAX_BALANCE_MICRO) return;
  const most = `${MAX_BALANCE_MICRO} micro-dollars, which is the most`;
  throw invalidField(
    'amount_micro',
    balanceMicro > 0 ? `raises the balance above ${most}` : `brings the balance below -${most}`,
  );
}
