import { invalidField } from '../refusal.js';

/** The kinds of ledger entries. There is one charge per instance, meter and UTC hour. */
export const TRANSACTION_KINDS = ['credit', 'payment', 'refund', 'dispute', 'charge'] as const;
export type TransactionKind = (typeof TRANSACTION_KINDS)[number];

export type Meter = 'gpu' | 'disk';

/** By what the charges of an organization are added up, for each UTC day of use. */
export const CHARGE_GROUPS = ['api_key', 'instance', 'label', 'member', 'template'] as const;
export type ChargeGroup = (typeof CHARGE_GROUPS)[number];

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

const MICRO_PER_CENT = 10_000;

/** Writes an amount of micro-dollars in dollars, with every digit that it has and at least two after the point. */
export function exactDollars(micro: number): string {
  const digits = String(Math.abs(micro) % 1_000_000).padStart(6, '0');
  const whole = Math.floor(Math.abs(micro) / 1_000_000);
  return `${micro < 0 ? '-' : ''}$${whole}.${digits.slice(0, 2)}${digits.slice(2).replace(/0+$/, '')}`;
}

/** Writes an amount of micro-dollars in dollars, rounded down to a cent. */
export function dollars(micro: number): string {
  const cents = Math.abs(Math.floor(micro / MICRO_PER_CENT));
  return `${micro < 0 ? '-' : ''}$${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, '0')}`;
}
