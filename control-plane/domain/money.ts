/** What moves a balance. A charge is booked per instance, meter and UTC hour. */
export const TRANSACTION_KINDS = ['credit', 'payment', 'refund', 'dispute', 'charge'] as const;
export type TransactionKind = (typeof TRANSACTION_KINDS)[number];

export type Meter = 'gpu' | 'disk';

/** How renters add to their balance by themselves, where the operator has set that up. */
export interface PaymentProvider {
  /** Opens a page on which `amountMicro` is paid. Refuses with CHECKOUT_UNAVAILABLE where there is no such page. */
  openCheckout(checkout: { organizationId: string; amountMicro: number }): Promise<{ id: string; url: string }>;
}
