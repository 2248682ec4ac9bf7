import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import Stripe from 'stripe';
import type { StripeSettings } from '../../control-plane/payments/stripe.js';

const WEBHOOK_SECRET = 'whsec_test';
const SECRET_KEY = 'sk_test_double';

export interface OpenedSession {
  id: string;
  amountCents: number;
  metadata: Record<string, string>;
  paymentMetadata: Record<string, string>;
  successUrl: string;
  /** What the payer is asked for, and whether an invoice is made of it. */
  asksFor: { address: boolean; taxId: boolean; customer: boolean };
  invoiceMetadata: Record<string, string> | undefined;
}

/** A movement of money as Stripe tells it. */
export interface BalanceTransaction {
  id: string;
  type: string;
  reporting_category: string;
  amount: number;
  /** US dollars if absent. */
  currency?: string;
  fee: number;
  source: object | string | null;
}

/** The guardedPorts of Stripe that gpurent uses, on loopback: checkout sessions, idempotency keys, and events signed by the SDK. */
export class StripeDouble {
  readonly sessions: OpenedSession[] = [];
  /** What went into each payout, newest first. */
  readonly payouts = new Map<string, BalanceTransaction[]>();
  /** Answered instead, while it is set. */
  failure: { status: number; error: object } | undefined;
  private readonly remembered = new Map<string, { form: string; answer: object }>();
  private readonly stripe = new Stripe(SECRET_KEY);
  private events = 0;

  private constructor(private readonly server: Server) {}

  static async start(): Promise<StripeDouble> {
    const server = createServer((request, response) => void double.answer(request, response));
    const double = new StripeDouble(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return double;
  }

  get settings(): StripeSettings {
    const { port } = this.server.address() as AddressInfo;
    return {
      secretKey: SECRET_KEY,
      webhookSecret: WEBHOOK_SECRET,
      returnUrl: 'https://market.example/billing?tab=1',
      apiUrl: `http://127.0.0.1:${port}`,
    };
  }

  stop(): Promise<void> {
    this.server.closeAllConnections();
    return new Promise((resolve) => this.server.close(() => resolve()));
  }

  /** An event that was made at `created` as Stripe sends it: its body, and the signature made at `now`. */
  event(type: string, object: object, now: number, created = now): { payload: string; signature: string } {
    const id = `evt_${++this.events}`;
    const payload = JSON.stringify({
      id,
      object: 'event',
      type,
      created: Math.floor(created / 1000),
      data: { object },
    });
    return { payload, signature: this.sign(payload, now) };
  }

  sign(payload: string, now: number, secret = WEBHOOK_SECRET): string {
    const timestamp = Math.floor(now / 1000);
    return this.stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp });
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const form = await text(request);
    const send = (status: number, body: object, headers: Record<string, string> = {}) => {
      response.writeHead(status, { 'Content-Type': 'application/json', 'Request-Id': 'req_1', ...headers });
      response.end(JSON.stringify(body));
    };
    const refuse = (status: number, error: object) => send(status, { error }, { 'Stripe-Should-Retry': 'false' });
    if (this.failure) return refuse(this.failure.status, this.failure.error);
    if (request.headers.authorization !== `Bearer ${SECRET_KEY}`) {
      return refuse(401, { type: 'invalid_request_error', message: 'Invalid API Key provided' });
    }
    const url = new URL(request.url ?? '', 'http://stripe');
    if (request.method === 'GET' && url.pathname === '/v1/balance_transactions') {
      const after = url.searchParams.get('starting_after');
      const page = this.readPayout(url.searchParams);
      if (page && after !== null && !this.isEntry(after))
        return refuse(400, { type: 'invalid_request_error', param: 'starting_after', message: 'No such transaction' });
      if (page) return send(200, page);
      return refuse(400, { type: 'invalid_request_error', code: 'resource_missing', message: 'No such payout' });
    }
    if (request.method !== 'POST' || request.url !== '/v1/checkout/sessions') {
      return refuse(404, { type: 'invalid_request_error', message: `Unrecognized request URL (${request.url})` });
    }
    const key = String(request.headers['idempotency-key'] ?? '');
    const known = this.remembered.get(key);
    if (known && known.form !== form) {
      return refuse(400, {
        type: 'idempotency_error',
        message: 'Keys for idempotent requests can only be used with the same parameters',
      });
    }
    if (known) return send(200, known.answer, { 'Idempotent-Replayed': 'true' });
    const session = this.open(new URLSearchParams(form));
    if (session === undefined) return refuse(400, { type: 'invalid_request_error', message: 'Invalid integer' });
    if (key) this.remembered.set(key, { form, answer: session });
    send(200, session);
  }

  private isEntry(id: string): boolean {
    return [...this.payouts.values()].some((entries) => entries.some((entry) => entry.id === id));
  }

  private readPayout(asked: URLSearchParams): object | undefined {
    const all = this.payouts.get(asked.get('payout') ?? '');
    if (!all || asked.get('expand[0]') !== 'data.source') return undefined;
    const from = all.findIndex(({ id }) => id === asked.get('starting_after')) + 1;
    const data = all.slice(from, from + Number(asked.get('limit'))).map((entry) => ({ currency: 'usd', ...entry }));
    return { object: 'list', url: '/v1/balance_transactions', data, has_more: from + data.length < all.length };
  }

  private open(form: URLSearchParams): object | undefined {
    const amountCents = Number(form.get('line_items[0][price_data][unit_amount]'));
    const isComplete = form.get('mode') === 'payment' && form.get('line_items[0][price_data][currency]') === 'usd';
    if (!isComplete || !Number.isInteger(amountCents)) return undefined;
    const id = `cs_test_${this.sessions.length + 1}`;
    this.sessions.push({
      id,
      amountCents,
      metadata: under(form, 'metadata'),
      paymentMetadata: under(form, 'payment_intent_data[metadata]'),
      successUrl: form.get('success_url') ?? '',
      asksFor: {
        address: form.get('billing_address_collection') === 'required',
        taxId: form.get('tax_id_collection[enabled]') === 'true',
        customer: form.get('customer_creation') === 'always',
      },
      invoiceMetadata:
        form.get('invoice_creation[enabled]') === 'true'
          ? under(form, 'invoice_creation[invoice_data][metadata]')
          : undefined,
    });
    return { id, object: 'checkout.session', url: `https://checkout.stripe.com/c/pay/${id}`, payment_intent: null };
  }
}

function under(form: URLSearchParams, prefix: string): Record<string, string> {
  const its = [...form].filter(([name]) => name.startsWith(`${prefix}[`));
  return Object.fromEntries(its.map(([name, value]) => [name.slice(prefix.length + 1, -1), value]));
}
