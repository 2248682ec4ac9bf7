import { invalidField } from './refusal.js';

/** The kinds of ledger entries. There is one charge per instance, meter and UTC hour. */
export const TRANSACTION_KINDS = ['credit', 'payment', 'refund', 'dispute', 'charge'] as const;
export type TransactionKind = (typeof TRANSACTION_KINDS)[number];

export type Meter = 'gpu' | 'disk';

/** A billion dollars. Far below the largest exact integer of a double, so that every sum of money is exact. */
export const MAX_BALANCE_MICRO = 1_000_000_000_000_000;

/** Refuses with VALIDATION_FAILED if a changed balance is above {@link MAX_BALANCE_MICRO}, or below its negative. */
export function checkChangedBalance(balanceMicro: number): void {
  if (Math.abs(balanceMicro) <= MAX_BALANCE_MICRO) return;
  const most = `${MAX_BALANCE_MICRO} micro-dollars, which is the limit`;
  throw invalidField(
    'amount_micro',
    balanceMicro > 0 ? `raises the balance above ${most}` : `brings the balance below -${most}`,
  );
}
