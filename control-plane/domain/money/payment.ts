/** A page of the payment provider on which an organization pays. */
export interface Checkout {
  id: string;
  url: string;
  /** Whether an earlier request with the same idempotency key opened it. */
  replayed: boolean;
}

export interface CheckoutRequest {
  organizationId: string;
  amountMicro: number;
  /** Repeated requests with the same key open only one page. */
  idempotencyKey: string | undefined;
}

/** An event of a payment that the provider has sent. Events arrive in any order, and any number of times. */
export type PaymentEvent =
  /** A checkout was paid. */
  | { kind: 'paid'; paymentId: string; organizationId: string; amountMicro: number }
  /** A payment that takes days, such as a direct debit, has failed after its checkout. */
  | { kind: 'failed'; paymentId: string; organizationId: string; amountMicro: number }
  /** The payment's refunds add up to `amountMicro` now. */
  | { kind: 'refunded'; paymentId: string; amountMicro: number }
  /** One refund. A refund that has failed never becomes `made` again. */
  | { kind: 'refund'; paymentId: string; refundId: string; state: 'made' | 'failed'; amountMicro: number }
  | Dispute;

/** A dispute of a payment. Its state can change after a decision; the newest event counts. */
interface Dispute {
  kind: 'dispute';
  paymentId: string;
  disputeId: string;
  state: 'open' | 'won' | 'lost';
  amountMicro: number;
  /** When the provider created the event, in milliseconds since 1970. */
  at: number;
}

/** One movement of money that is part of a payout. */
export interface PayoutEntry {
  /** The provider's id of the movement. */
  id: string;
  /** What the movement belongs to; `other` for anything unknown here, such as a separate fee. */
  kind: 'payment' | 'refund' | 'dispute' | 'other';
  /** The provider's id of the payment. */
  paymentId: string | null;
  /** The provider's id of the refund or dispute. */
  sourceId: string | null;
  /** Before the provider's fee; negative for money that went out. */
  amountMicro: number;
  feeMicro: number;
}

export interface PayoutPage {
  entries: PayoutEntry[];
  next: string | null;
}

/** The events that a provider sends to `/v1/webhooks/NAME`. */
export interface PaymentWebhook {
  /** What people call the provider. */
  title: string;
  /** The lower-case name of the header with the signature. */
  signatureHeader: string;
  /**
   * Verifies the signature and reads the event. Returns undefined for an event that moves no money of this marketplace. `now` is
   * in milliseconds since 1970. Refuses with SIGNATURE_INVALID, and with VALIDATION_FAILED a signed body that is no event.
   */
  readEvent(body: string, signature: string, now: number): PaymentEvent | undefined;
}

/** A service through which renters pay, chosen by the setting GPURENT_PAYMENTS. */
export interface PaymentProvider {
  /** Lower-case letters. Part of each payment, of the webhook's path and of GPURENT_PAYMENTS. */
  readonly name: string;
  /** Whether {@link openCheckout} opens pages at all. */
  readonly hasCheckout: boolean;
  /** Absent if the provider sends no events. */
  readonly webhook?: PaymentWebhook;
  /**
   * Opens a page for paying `amountMicro`. Refuses with CHECKOUT_UNAVAILABLE if the provider has no such page, UNAVAILABLE if it
   * does not answer, VALIDATION_FAILED, or IDEMPOTENCY_KEY_REUSED.
   */
  openCheckout(request: CheckoutRequest): Promise<Checkout>;
  /**
   * Returns up to `limit` entries of a payout, at most 100, from `cursor` on. `next` is the cursor of the next page, or null on the
   * last. Refuses with NOT_FOUND, UNAVAILABLE or VALIDATION_FAILED. Absent if the provider pays nothing out.
   */
  readPayout?(id: string, limit: number, cursor: string | undefined): Promise<PayoutPage>;
}
