import type { PaymentProvider } from '../domain/money/payment.js';
import { Refusal } from '../domain/refusal.js';

/** Takes payments outside the system: an operator grants credit for them. */
export const manualPayments: PaymentProvider = {
  name: 'manual',
  hasCheckout: false,
  async openCheckout() {
    throw new Refusal('CHECKOUT_UNAVAILABLE', 'this marketplace has no online payments; ask its operator for credit');
  },
};
