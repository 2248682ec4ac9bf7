/** A page on which an organization tops its balance up. */
export interface Checkout {
  id: string;
  url: string;
  /** Whether it was opened before, by the same request. */
  replayed: boolean;
}

export interface CheckoutRequest {
  organizationId: string;
  amountMicro: number;
  /** What makes repetitions of a request one. */
  idempotencyKey: string | undefined;
}

/** What a provider has told of a payment. Told in any order, and any number of times. */
export type PaymentEvent =
  /** A checkout was paid. */
  | { kind: 'paid'; paymentId: string; organizationId: string; amountMicro: number }
  /** So much was given back, in all. */
  | { kind: 'refunded'; paymentId: string; amountMicro: number }
  /** One refund. One that has failed is never made any more. */
  | { kind: 'refund'; paymentId: string; refundId: string; state: 'made' | 'failed'; amountMicro: number }
  | Dispute;

/** A decision may change: the newest counts. */
interface Dispute {
  kind: 'dispute';
  paymentId: string;
  disputeId: string;
  state: 'open' | 'won' | 'lost';
  amountMicro: number;
  /** When the provider has made the event, in milliseconds since 1970. */
  at: number;
}

/** One movement of the provider's money that went into a payout. */
export interface PayoutEntry {
  /** The provider's id of the movement. */
  id: string;
  /** What it belongs to; `other`: nothing that is known here, such as a fee of its own. */
  kind: 'payment' | 'refund' | 'dispute' | 'other';
  /** The payment, and the refund or dispute, in the provider's ids. */
  paymentId: string | null;
  sourceId: string | null;
  /** Before the provider's fee; negative: it left. */
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
  /** Lower-case letters: stands in each payment, in the path of the webhook and in GPURENT_PAYMENTS. */
  readonly name: string;
  /** Absent where the provider sends nothing. */
  readonly webhook?: PaymentWebhook;
  /**
   * Opens a page on which `amountMicro` is paid. Refuses with CHECKOUT_UNAVAILABLE where there is no such page, UNAVAILABLE where
   * the provider does not answer, VALIDATION_FAILED, IDEMPOTENCY_KEY_REUSED.
   */
  openCheckout(request: CheckoutRequest): Promise<Checkout>;
  /**
   * So many entries of a payout, a hundred at most, from where the page before has ended, and where this one ends; null on the last.
   * Refuses with NOT_FOUND, UNAVAILABLE, VALIDATION_FAILED. Absent where nothing is paid out.
   */
  readPayout?(id: string, limit: number, cursor: string | undefined): Promise<PayoutPage>;
}
