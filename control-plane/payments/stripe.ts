import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import type Stripe from 'stripe';
import type {
  Checkout,
  CheckoutRequest,
  PaymentEvent,
  PaymentProvider,
  PaymentWebhook,
  PayoutEntry,
  PayoutPage,
} from '../domain/money/payment.js';
import { Refusal, invalidField } from '../domain/refusal.js';

export const STRIPE_SETTINGS = [
  'GPURENT_STRIPE_SECRET_KEY_FILE',
  'GPURENT_STRIPE_WEBHOOK_SECRET_FILE',
  'GPURENT_STRIPE_RETURN_URL',
  'GPURENT_STRIPE_API_URL',
] as const;

/** Reads one setting. Each method throws SetupError, which names the setting, for a missing or bad value. */
export interface SettingsReader {
  /** Returns the text of the file that the setting names. */
  secret(name: string): string;
  /** Returns an https address, or an http address on loopback. */
  webAddress(name: string): string;
  /** Returns the same, or undefined if it is not set. */
  optionalWebAddress(name: string): string | undefined;
}

export interface StripeSettings {
  secretKey: string;
  webhookSecret: string;
  /** The page to which Stripe sends the payer back. */
  returnUrl: string;
  /** The address of the API; undefined: Stripe's own. */
  apiUrl: string | undefined;
}

const MICRO_PER_CENT = 10_000;
/** The largest amount that Stripe charges at once, in cents. */
const MOST_CENTS = 99_999_999;
const TIMEOUT_MS = 10_000;
/** The largest page that Stripe returns. */
const PAYOUT_PAGE = 100;
/** The metadata key that marks our payments among others of the same Stripe account. */
const ORGANIZATION = 'gpurent_organization_id';

/** Loaded only when needed: the library is large and would delay every start. */
const load = createRequire(import.meta.url);
const sdk = () => load('stripe') as typeof Stripe;

/** Reads the settings of Stripe; the returned function opens it. Throws SetupError. */
export function openStripe(settings: SettingsReader): () => StripePayments {
  const read: StripeSettings = {
    secretKey: settings.secret('GPURENT_STRIPE_SECRET_KEY_FILE'),
    webhookSecret: settings.secret('GPURENT_STRIPE_WEBHOOK_SECRET_FILE'),
    returnUrl: settings.webAddress('GPURENT_STRIPE_RETURN_URL'),
    apiUrl: settings.optionalWebAddress('GPURENT_STRIPE_API_URL'),
  };
  return () => new StripePayments(read);
}

/** Takes payments by Stripe Checkout, in US dollars. */
export class StripePayments implements PaymentProvider {
  readonly name = 'stripe';
  readonly hasCheckout = true;
  readonly webhook: PaymentWebhook = {
    title: 'Stripe',
    signatureHeader: 'stripe-signature',
    readEvent: (...sent) => this.readEvent(...sent),
  };
  private readonly stripe: Stripe;

  constructor(private readonly settings: StripeSettings) {
    this.stripe = new (sdk())(settings.secretKey, {
      telemetry: false,
      timeout: TIMEOUT_MS,
      maxNetworkRetries: 2,
      ...addressOf(settings.apiUrl),
    });
  }

  async openCheckout({ organizationId, amountMicro, idempotencyKey }: CheckoutRequest): Promise<Checkout> {
    if (amountMicro % MICRO_PER_CENT !== 0) throw invalidField('amount_micro', 'must be a whole number of cents');
    const metadata = { [ORGANIZATION]: organizationId };
    const product_data = { name: 'Credit' };
    const price_data = { currency: 'usd', unit_amount: amountMicro / MICRO_PER_CENT, product_data };
    try {
      const session = await this.stripe.checkout.sessions.create(
        {
          mode: 'payment',
          client_reference_id: organizationId,
          line_items: [{ quantity: 1, price_data }],
          metadata,
          payment_intent_data: { metadata },
          // An invoice needs the payer's name, address and, if there is one, tax id.
          billing_address_collection: 'required',
          tax_id_collection: { enabled: true },
          customer_creation: 'always',
          invoice_creation: { enabled: true, invoice_data: { metadata } },
          success_url: this.returnTo('paid'),
          cancel_url: this.returnTo('cancelled'),
        },
        idempotencyKey === undefined ? {} : { idempotencyKey: keyOf(organizationId, idempotencyKey) },
      );
      if (session.url === null) throw new Error(`the checkout session ${session.id} has no URL`);
      const replayed = session.lastResponse.headers['idempotent-replayed'] === 'true';
      return { id: session.id, url: session.url, replayed };
    } catch (error) {
      throw this.refusalOf(error);
    }
  }

  private readEvent(body: string, signature: string, now: number): PaymentEvent | undefined {
    const event = this.verified(body, signature, now) as { data?: { object?: unknown } } | null;
    if (typeof event?.data?.object !== 'object' || event.data.object === null)
      throw invalidField('data.object', 'is missing: the body is not an event');
    return eventOf(event as Stripe.Event);
  }

  async readPayout(id: string, limit: number, cursor: string | undefined): Promise<PayoutPage> {
    const page = { limit: Math.min(limit, PAYOUT_PAGE), ...(cursor === undefined ? {} : { starting_after: cursor }) };
    try {
      const list = this.stripe.balanceTransactions.list({ payout: id, expand: ['data.source'], ...page });
      const { data, has_more } = await list;
      // Stripe lists the payout among its own entries.
      const entries = data.filter(({ type }) => type !== 'payout').map(entryOf);
      return { entries, next: has_more ? (data.at(-1)?.id ?? null) : null };
    } catch (error) {
      throw this.refusalOf(error);
    }
  }

  /**
   * Verifies the signature and returns the parsed body. Refuses with SIGNATURE_INVALID, and with VALIDATION_FAILED for bad JSON.
   */
  private verified(body: string, signature: string, now: number): unknown {
    const { webhooks } = this.stripe;
    try {
      return webhooks.constructEvent(body, signature, this.settings.webhookSecret, undefined, undefined, now);
    } catch (error) {
      // The library parses the JSON only after it has verified the signature.
      if (error instanceof SyntaxError) throw invalidField('', 'the body is not JSON');
      throw new Refusal('SIGNATURE_INVALID', 'the signature is not valid; check the webhook secret and the clock');
    }
  }

  /**
   * Returns a Refusal for errors that the payer can act on. Any other is a fault of this installation: an Error without our
   * secret key.
   */
  private refusalOf(error: unknown): unknown {
    const { StripeError, StripeIdempotencyError, ...others } = sdk().errors;
    if (error instanceof StripeIdempotencyError)
      return new Refusal('IDEMPOTENCY_KEY_REUSED', 'this Idempotency-Key was used for another request; use a new one');
    const passing = [others.StripeConnectionError, others.StripeAPIError, others.StripeRateLimitError];
    if (passing.some((kind) => error instanceof kind))
      return new Refusal('UNAVAILABLE', 'the payment provider does not answer; try again shortly');
    if (!(error instanceof StripeError)) return error;
    if (error.param === 'starting_after')
      return invalidField('cursor', 'must be the next_cursor of a page of this list');
    if (error.code === 'resource_missing')
      return new Refusal('NOT_FOUND', 'the payment provider has nothing with this id');
    const { type, message, requestId } = error;
    const said = `${type}: ${message.replaceAll(this.settings.secretKey, '(the key)')}`;
    return new Error(`the payment provider refused request ${requestId || 'unknown'}: ${said}`);
  }

  private returnTo(outcome: string): string {
    const url = new URL(this.settings.returnUrl);
    url.searchParams.set('checkout', outcome);
    return url.href;
  }
}

function addressOf(url: string | undefined): Pick<Stripe.StripeConfig, 'protocol' | 'host' | 'port'> {
  if (url === undefined) return {};
  const { protocol, hostname, port } = new URL(url);
  const isPlain = protocol === 'http:';
  return { protocol: isPlain ? 'http' : 'https', host: hostname, port: port || (isPlain ? '80' : '443') };
}

/** Returns an idempotency key for one organization: in Stripe, the whole account shares one set of keys. */
function keyOf(organizationId: string, key: string): string {
  return createHash('sha256').update(`${organizationId} ${key}`).digest('hex');
}

function eventOf(event: Stripe.Event): PaymentEvent | undefined {
  switch (event.type) {
    case 'checkout.session.completed':
    case 'checkout.session.async_payment_succeeded':
      return paidBy(event.data.object);
    case 'checkout.session.async_payment_failed':
      return failureOf(event.data.object);
    case 'charge.refunded': {
      const { payment_intent, amount_refunded, currency, metadata } = event.data.object;
      if (!payment_intent || currency !== 'usd' || !organizationIn(metadata)) return undefined;
      const amountMicro = microOf('amount_refunded', amount_refunded);
      return { kind: 'refunded', paymentId: idOf('payment_intent', payment_intent), amountMicro };
    }
    case 'refund.created':
    case 'refund.updated':
    case 'refund.failed':
    case 'charge.refund.updated': {
      const { id, payment_intent, amount, currency, status } = event.data.object;
      if (!payment_intent || currency !== 'usd') return undefined;
      const state = status === 'failed' || status === 'canceled' ? 'failed' : 'made';
      const ids = { paymentId: idOf('payment_intent', payment_intent), refundId: idOf('id', id) };
      return { kind: 'refund', ...ids, state, amountMicro: microOf('amount', amount) };
    }
    case 'charge.dispute.created':
    case 'charge.dispute.updated':
    case 'charge.dispute.closed': {
      const { id, payment_intent, status } = event.data.object;
      const state = stateOf(status);
      if (!payment_intent || state === undefined) return undefined;
      const amountMicro = disputedMicro(event.data.object);
      const ids = { paymentId: idOf('payment_intent', payment_intent), disputeId: idOf('id', id) };
      return { kind: 'dispute', ...ids, state, amountMicro, at: madeAt(event) };
    }
    default:
      return undefined;
  }
}

/**
 * Returns the state of a dispute; undefined: it moves no money and freezes nothing. An inquiry (`warning_...`) is not a dispute
 * until its status changes. An appeal concerns a dispute that is already lost.
 */
function stateOf(status: string): 'open' | 'won' | 'lost' | undefined {
  switch (status) {
    case 'needs_response':
    case 'under_review':
      return 'open';
    case 'lost':
      return 'lost';
    case 'won':
    case 'prevented':
    case 'warning_closed':
      return 'won';
    default:
      return undefined;
  }
}

/**
 * Returns the disputed amount. A bank can state it in another currency: then it is what Stripe has taken in US dollars, or, while
 * Stripe has taken nothing in US dollars, the most that a payment can be; the ledger takes back no more than was paid.
 */
function disputedMicro({ amount, currency, balance_transactions }: Stripe.Dispute): number {
  if (currency === 'usd') return microOf('amount', amount);
  const moves = Array.isArray(balance_transactions) ? balance_transactions : [];
  const taken = moves
    .filter((move) => move.currency === 'usd' && move.amount < 0)
    .reduce((sum, move) => sum - move.amount, 0);
  return microOf('balance_transactions', taken || MOST_CENTS);
}

const ENTRY_KINDS: Readonly<Record<string, PayoutEntry['kind']>> = {
  charge: 'payment',
  refund: 'refund',
  refund_failure: 'refund',
  dispute: 'dispute',
  dispute_reversal: 'dispute',
};

/** Refuses with VALIDATION_FAILED an entry that is not in US dollars. */
function entryOf({ id, reporting_category, amount, currency, fee, source }: Stripe.BalanceTransaction): PayoutEntry {
  if (currency !== 'usd')
    throw invalidField('id', `is a payout in ${currency}: only payouts in US dollars can be compared with the ledger`);
  const its =
    typeof source === 'object' ? (source as { id?: string; payment_intent?: unknown } | null) : { id: source };
  const intent = its?.payment_intent;
  return {
    id,
    kind: ENTRY_KINDS[reporting_category] ?? 'other',
    paymentId: intent ? idOf('payment_intent', intent) : null,
    sourceId: its?.id ?? null,
    amountMicro: amount * MICRO_PER_CENT,
    feeMicro: fee * MICRO_PER_CENT,
  };
}

/** Returns the payment of a checkout; undefined if it is not ours or not paid: a checkout can complete before it is paid. */
function paidBy(session: Stripe.Checkout.Session): PaymentEvent | undefined {
  const payment = session.payment_status === 'paid' ? paymentOf(session) : undefined;
  return payment && { kind: 'paid', ...payment };
}

/** Returns the failure of a payment by a checkout; undefined if it is not ours. */
function failureOf(session: Stripe.Checkout.Session): PaymentEvent | undefined {
  const payment = paymentOf(session);
  return payment && { kind: 'failed', ...payment };
}

function paymentOf(session: Stripe.Checkout.Session) {
  const { payment_intent, amount_total, currency, metadata } = session;
  const organizationId = organizationIn(metadata);
  if (!organizationId || !payment_intent || currency !== 'usd') return undefined;
  const amountMicro = microOf('amount_total', amount_total ?? 0);
  return { paymentId: idOf('payment_intent', payment_intent), organizationId, amountMicro };
}

/** Returns the organization of one of our payments; undefined for another one of the account. */
function organizationIn(metadata: unknown): string | undefined {
  const id = (metadata as Record<string, unknown> | null | undefined)?.[ORGANIZATION];
  return typeof id === 'string' ? id : undefined;
}

/** Converts cents to micro-dollars. Refuses with VALIDATION_FAILED if it is not an amount. */
function microOf(field: string, cents: unknown): number {
  if (Number.isSafeInteger(cents) && (cents as number) >= 0 && (cents as number) <= MOST_CENTS)
    return (cents as number) * MICRO_PER_CENT;
  throw invalidField(`data.object.${field}`, `must be a whole number of cents from 0 to ${MOST_CENTS}`);
}

/** Returns when Stripe made the event, in milliseconds since 1970 UTC. Refuses with VALIDATION_FAILED if it is not a time. */
function madeAt({ created }: { created: unknown }): number {
  const at = Number.isSafeInteger(created) ? (created as number) * 1_000 : NaN;
  if (!Number.isSafeInteger(at)) throw invalidField('created', 'must be a time in seconds');
  return at;
}

/** Returns the id of an object that Stripe sends whole or as its id. Refuses with VALIDATION_FAILED if there is none. */
function idOf(field: string, object: unknown): string {
  const id = typeof object === 'object' && object !== null && 'id' in object ? object.id : object;
  if (typeof id !== 'string') throw invalidField(`data.object.${field}`, 'must be an id, or an object with one');
  return id;
}
