import { exactDollars } from '../../../domain/money/money.js';
import { Refusal } from '../../../domain/refusal.js';
import type { Tx } from '../../../store/store.js';
import { getOrganization } from '../../organizations/organizations.js';

/** Refuses with PAYMENTS_FROZEN, or with INSUFFICIENT_BALANCE if the balance is less than `requiredMicro` (API rule 17). */
export function checkPayment(tx: Tx, organizationId: string, requiredMicro: number): void {
  const { payments_frozen_at, balance_micro } = getOrganization(tx, organizationId);
  const refusal = refusalOfFreeze(payments_frozen_at !== null) ?? refusalOfBalance(balance_micro, requiredMicro);
  if (refusal) throw refusal;
}

/** Returns the refusal PAYMENTS_FROZEN if the payments of an organization are frozen. */
export function refusalOfFreeze(isFrozen: boolean): Refusal | undefined {
  if (!isFrozen) return undefined;
  return new Refusal('PAYMENTS_FROZEN', 'a payment dispute is open; nothing can be started until it is closed');
}

/** Returns the refusal INSUFFICIENT_BALANCE if the balance is less than what is required, both in micro-dollars. */
export function refusalOfBalance(balanceMicro: number, requiredMicro: number): Refusal | undefined {
  if (balanceMicro >= requiredMicro) return undefined;
  return new Refusal(
    'INSUFFICIENT_BALANCE',
    `you need ${exactDollars(requiredMicro)}, one hour of everything that the organization would run; add ${exactDollars(requiredMicro - balanceMicro)} or more, or stop or destroy other instances`,
    {
      balance_micro: balanceMicro,
      required_micro: requiredMicro,
    },
  );
}
