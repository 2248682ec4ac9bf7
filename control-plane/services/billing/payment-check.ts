import { Refusal } from '../../domain/refusal.js';
import type { Tx } from '../../store/store.js';
import { getOrganization } from '../accounts/organizations.js';

/** Whether the organization may add to its burn (API rule 17). Refuses with PAYMENTS_FROZEN or INSUFFICIENT_BALANCE. */
export function checkPayment(tx: Tx, organizationId: string, requiredMicro: number): void {
  const organization = getOrganization(tx, organizationId);
  if (organization.payments_frozen_at !== null) {
    throw new Refusal('PAYMENTS_FROZEN', 'a payment dispute is open; nothing can be started until it is closed');
  }
  if (organization.balance_micro < requiredMicro) {
    throw new Refusal(
      'INSUFFICIENT_BALANCE',
      'the balance does not cover one hour of everything that the organization would run',
      {
        balance_micro: organization.balance_micro,
        required_micro: requiredMicro,
      },
    );
  }
}
