import type { PaymentProvider } from '../domain/payment.js';
import { Refusal } from '../domain/refusal.js';

/** Payments outside the system: the operator grants credit, and nothing is paid here. */
export const manualPayments: PaymentProvider = {
  name: 'manual',
  async openCheckout() {
    throw new Refusal(
      'CHECKOUT_UNAVAILABLE',
      'no payments are taken here; ask the operator of this marketplace for credit',
    );
  },
};
