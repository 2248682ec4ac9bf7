import { Refusal } from '../../domain/refusal.js';
import type { Tx } from '../../store/store.js';
import { getOrganization } from '../accounts/organizations.js';

/** Refuses with PAYMENTS_FROZEN, or with INSUFFICIENT_BALANCE if the balance is less than `requiredMicro` (API rule 17). */
export function checkPayment(tx: Tx, organizationId: string, requiredMicro: number): void {
  const organization = getOrganization(tx, organizationId);
  if (organization.payments_frozen_at !== null) {
    throw new Refusal('PAYMENTS_FROZEN', 'a payment dispute is open; nothing can be started until it is closed');
  }
  if (organization.balance_micro < requiredMicro) {
    throw new Refusal(
      'INSUFFICIENT_BALANCE',
      'the balance must cover one hour of everything that the organization would run; top up the balance, or stop or destroy other instances',
      {
        balance_micro: organization.balance_micro,
        required_micro: requiredMicro,
      },
    );
  }
}
