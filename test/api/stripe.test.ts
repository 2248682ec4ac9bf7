import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { query } from '../../control-plane/store/sql.js';
import { eventually } from '../../scripts/eventually.js';
import { StripeDouble } from '../harness/stripe-double.js';
import { listening } from '../harness/told.js';

let stripe: StripeDouble;
let test: TestControlPlane;
let url: string;
beforeAll(async () => {
  stripe = await StripeDouble.start();
  test = await TestControlPlane.start({ stripe: stripe.settings });
  url = `${test.api.baseUrl}/v1/webhooks/stripe`;
});
afterEach(() => {
  stripe.failure = undefined;
});
afterAll(async () => {
  await test.stop();
  await stripe.stop();
});

const DOLLAR = 1_000_000;
const checkout = ({ api }: Renter, amount_micro: number, key?: string) =>
  api.request<{ id: string; url: string; code?: string }>(
    'POST',
    '/v1/billing/checkout-session',
    { amount_micro },
    key === undefined ? {} : { 'Idempotency-Key': key },
  );
const post = async (body: string, signature: string) => {
  const headers = { 'Content-Type': 'application/json', 'Stripe-Signature': signature };
  const response = await fetch(url, { method: 'POST', headers, body });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
};
const tell = async (type: string, object: object, created = test.clock.now()) => {
  const { payload, signature } = stripe.event(type, object, test.clock.now(), created);
  return post(payload, signature);
};
const balance = async ({ api }: Renter) =>
  await api.get<{ balance_micro: number; payments_frozen: boolean }>('/v1/orgs/current');
const rows = async ({ api }: Renter) =>
  (
    await api.get<{ items: { kind: string; amount_micro: number; reason: string | null }[] }>(
      '/v1/billing/transactions',
    )
  ).items;

type Event = readonly [type: string, object: object, created?: number];

interface Payment extends Record<
  'completed' | 'unpaid' | 'paidLater' | 'failed' | 'disputed' | 'won' | 'lost' | 'wonLater',
  Event
> {
  id: string;
  /** So many dollars, in all. */
  refunded(dollars: number): Event;
  /** One refund of so many dollars. */
  refund(name: string, status: string, dollars: number): Event;
}

let payments = 0;
/** What Stripe tells of one payment of so many dollars. */
function paymentOf({ organizationId }: Renter, dollars: number): Payment {
  const id = `pi_${++payments}`;
  const metadata = { gpurent_organization_id: organizationId };
  const money = { payment_intent: id, currency: 'usd' };
  const session = { ...money, id: `cs_${id}`, metadata, amount_total: dollars * 100, payment_status: 'paid' };
  const dispute = { ...money, id: `dp_${id}`, amount: dollars * 100 };
  return {
    id,
    completed: ['checkout.session.completed', session],
    unpaid: ['checkout.session.completed', { ...session, payment_status: 'unpaid' }],
    paidLater: ['checkout.session.async_payment_succeeded', session],
    failed: ['checkout.session.async_payment_failed', { ...session, payment_status: 'unpaid' }],
    refunded: (part: number) => [
      'charge.refunded',
      { ...money, id: `ch_${id}`, metadata, amount_refunded: part * 100 },
    ],
    disputed: ['charge.dispute.created', { ...dispute, status: 'needs_response' }],
    won: ['charge.dispute.closed', { ...dispute, status: 'won' }],
    lost: ['charge.dispute.closed', { ...dispute, status: 'lost' }],
    wonLater: ['charge.dispute.closed', { ...dispute, status: 'won' }, test.clock.now() + 86_400_000],
    refund: (name: string, status: string, part: number) => [
      status === 'failed' ? 'refund.failed' : 'refund.created',
      { ...money, id: `re_${id}_${name}`, amount: part * 100, status },
    ],
  };
}
const heard = async (event: Event) => expect((await tell(...event)).status).toBe(200);

describe('a checkout', () => {
  it('is a page of Stripe for the amount in dollars, and comes back here', async () => {
    const renter = await test.renter(0);
    const { status, body } = await checkout(renter, 25.5 * DOLLAR);
    expect(status).toBe(201);
    const session = stripe.sessions.at(-1);
    expect(body).toEqual({ id: session?.id, url: expect.stringContaining(session?.id ?? '') as string });
    expect(session).toMatchObject({
      amountCents: 2_550,
      metadata: { gpurent_organization_id: renter.organizationId },
      paymentMetadata: { gpurent_organization_id: renter.organizationId },
      successUrl: 'https://market.example/billing?tab=1&checkout=paid',
      asksFor: { address: true, taxId: true, customer: true },
      invoiceMetadata: { gpurent_organization_id: renter.organizationId },
    });
    expect((await balance(renter)).balance_micro).toBe(0);
  });

  it('is one page, however often the request is sent with one Idempotency-Key', async () => {
    const [renter, other] = [await test.renter(0), await test.renter(0)];
    const first = await checkout(renter, 10 * DOLLAR, 'once');
    const again = await checkout(renter, 10 * DOLLAR, 'once');
    expect(again.body).toEqual(first.body);
    expect(first.headers.get('idempotent-replayed')).toBeNull();
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(await checkout(renter, 11 * DOLLAR, 'once')).toMatchObject({
      status: 409,
      body: { code: 'IDEMPOTENCY_KEY_REUSED' },
    });
    expect((await checkout(other, 10 * DOLLAR, 'once')).body.id).not.toBe(first.body.id);
  });

  it('takes whole cents', async () => {
    const { status, body } = await checkout(await test.renter(0), 10 * DOLLAR + 1);
    expect({ status, ...body }).toMatchObject({
      status: 422,
      code: 'VALIDATION_FAILED',
      details: [{ path: 'amount_micro' }],
    });
  });

  it('takes nothing that raises a balance above the most', async () => {
    const renter = await test.renter(0);
    const richest = query.updateTable('organizations').set({ balance_micro: 1_000_000_000_000_000 - 5 * DOLLAR });
    test.core.platform.store.transact((tx) => tx.run(richest.where('id', '=', renter.organizationId)));
    const before = stripe.sessions.length;
    const { status, body } = await checkout(renter, 6 * DOLLAR);
    expect({ status, ...body }).toMatchObject({ status: 422, details: [{ path: 'amount_micro' }] });
    expect(stripe.sessions).toHaveLength(before);
    expect((await checkout(renter, 5 * DOLLAR)).status).toBe(201);
  });

  it('says to try again while Stripe does not answer, and hides what is wrong with this installation', async () => {
    const renter = await test.renter(0);
    stripe.failure = { status: 500, error: { type: 'api_error', message: 'internal' } };
    expect(await checkout(renter, 10 * DOLLAR)).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
    stripe.failure = {
      status: 401,
      error: { type: 'invalid_request_error', message: 'Invalid API Key: sk_test_double' },
    };
    const { status, body } = await checkout(renter, 10 * DOLLAR);
    expect(status).toBe(500);
    expect(JSON.stringify(body)).not.toContain('sk_test');
  });
});

describe('an event', () => {
  it('is believed only with a fresh signature over these very bytes', async () => {
    const renter = await test.renter(0);
    const [type, object] = paymentOf(renter, 10).completed;
    const now = test.clock.now();
    const { payload, signature } = stripe.event(type, object, now);
    const wrong = [
      post(payload.replace('"paid"', '"Paid"'), signature),
      post(payload, stripe.sign(payload, now, 'whsec_other')),
      post(payload, stripe.sign(payload, now - 6 * 60_000)),
      ...['', ' ', ',', '=', 't=', 'v1=', 't=x,v1=', 't=1', `t=${now},v1=\u00e9`, 'x'.repeat(1_000)].map((none) =>
        post(payload, none),
      ),
      post('', signature),
    ];
    for (const answer of await Promise.all(wrong))
      expect(answer).toMatchObject({ status: 400, body: { code: 'SIGNATURE_INVALID' } });
    expect((await balance(renter)).balance_micro).toBe(0);
    expect((await post(payload, signature)).status).toBe(200);
    expect((await balance(renter)).balance_micro).toBe(10 * DOLLAR);
  });

  it.each(['no JSON', '""', 'null', '[]', '{"type":"charge.refunded"}', '{"data":{}}', '{"data":{"object":null}}'])(
    'is an event: %s is signed, and none',
    async (body) => {
      const before = test.dump();
      const answer = await post(body, stripe.sign(body, test.clock.now()));
      expect(answer).toMatchObject({ status: 422, body: { code: 'VALIDATION_FAILED' } });
      expect(test.dump()).toEqual(before);
    },
  );

  it('may be as odd as it likes: nothing of it is looked at before its signature, and little afterwards', async () => {
    const before = test.dump();
    const deep = `{"data":{"object":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`;
    const names = Array.from({ length: 20_000 }, (_, at) => `"${at}":0`).join();
    const wide = `{"type":"charge.refunded","data":{"object":{${names}}}}`;
    for (const body of [deep, wide]) {
      expect(await post(body, `t=1,${'v1=a,'.repeat(200)}`)).toMatchObject({ body: { code: 'SIGNATURE_INVALID' } });
      expect((await post(body, stripe.sign(body, test.clock.now()))).status).toBeLessThan(500);
    }
    const latin = Buffer.from('{"type":"caf\xe9"}', 'latin1');
    const headers = { 'Content-Type': 'application/json', 'Stripe-Signature': 't=1,v1=a' };
    const answer = await fetch(url, { method: 'POST', headers, body: latin });
    expect([answer.status, await answer.json()]).toMatchObject([400, { code: 'MALFORMED_JSON' }]);
    expect(test.dump()).toEqual(before);
  });

  it('says of what amount and of which payment', async () => {
    const before = test.dump();
    const payment = paymentOf(await test.renter(0), 10);
    const ones = [payment.completed, payment.refunded(1), payment.lost];
    const wrong = {
      payment_intent: [{}, 7],
      amount_total: ['1', 1.5, -1, 1e300],
      amount_refunded: ['1'],
      amount: ['1'],
    };
    for (const [type, object] of ones) {
      for (const [field, values] of Object.entries(wrong).filter(([name]) => name in object)) {
        for (const value of values) {
          const answer = await tell(type, { ...object, [field]: value });
          expect(answer, `${type} ${field}`).toMatchObject({ status: 422, body: { code: 'VALIDATION_FAILED' } });
        }
      }
      expect((await tell(type, { ...object, metadata: 7 })).status, type).toBe(200);
    }
    expect(before['transactions']).toBe(test.dump()['transactions']);
  });

  it('that is of no concern here is heard and changes nothing', async () => {
    const before = test.dump();
    await heard(['customer.created', { id: 'cus_1' }]);
    await heard([
      'checkout.session.completed',
      { id: 'cs_x', payment_intent: 'pi_x', metadata: {}, payment_status: 'paid', currency: 'usd', amount_total: 100 },
    ]);
    expect(test.dump()).toEqual(before);
  });

  it('does not exist where payments are manual', async () => {
    const manual = await TestControlPlane.start();
    const answer = await manual.api.request('POST', '/v1/webhooks/stripe', {});
    expect(answer).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
    await manual.stop();
  });
});

describe('a payment', () => {
  it('is credited once it is paid, however often that is told', async () => {
    const renter = await test.renter(0);
    const payment = paymentOf(renter, 20);
    await heard(payment.unpaid);
    expect((await balance(renter)).balance_micro).toBe(0);
    for (const event of [payment.paidLater, payment.completed, payment.paidLater]) await heard(event);
    expect(await rows(renter)).toMatchObject([{ kind: 'payment', amount_micro: 20 * DOLLAR, reason: payment.id }]);
  });

  it('that fails days after its checkout moves no money, and is told of once', async () => {
    const renter = await test.renter(0);
    const told = listening(test, renter.organizationId);
    const payment = paymentOf(renter, 20);
    for (const event of [payment.unpaid, payment.failed, payment.failed]) await heard(event);
    expect(told().map(({ type, data }) => [type, data])).toEqual([
      ['billing.payment_failed', { amount_micro: 20 * DOLLAR, balance_micro: 0, payment_id: payment.id }],
    ]);
    expect(await rows(renter)).toEqual([]);
    const { items } = await test.operator.get<{ items: { id: string; failed_at: string | null }[] }>(
      '/v1/operator/payments',
    );
    expect(items.find(({ id }) => id === payment.id)?.failed_at).toBe(new Date(test.clock.now()).toISOString());
  });

  it('that has been paid cannot fail any more', async () => {
    const renter = await test.renter(0);
    const payment = paymentOf(renter, 20);
    await heard(payment.paidLater);
    const told = listening(test, renter.organizationId);
    await heard(payment.failed);
    expect(told()).toEqual([]);
    expect((await balance(renter)).balance_micro).toBe(20 * DOLLAR);
  });

  it("of another organization or service that has failed is nobody's here", async () => {
    const renter = await test.renter(0);
    const [type, session] = paymentOf(renter, 20).failed;
    const told = listening(test, renter.organizationId);
    for (const gpurent_organization_id of [undefined, '00000000-0000-4000-8000-000000000000'])
      await heard([type, { ...session, metadata: { gpurent_organization_id } }]);
    expect(told()).toEqual([]);
  });

  it('is debited by what is refunded, in all', async () => {
    const renter = await test.renter(0);
    const payment = paymentOf(renter, 20);
    for (const event of [payment.completed, payment.refunded(5), payment.refunded(12), payment.refunded(5)])
      await heard(event);
    expect((await rows(renter)).map(({ amount_micro }) => amount_micro / DOLLAR)).toEqual([-7, -5, 20]);
  });

  it('that is disputed freezes payments until it is won, and moves no money', async () => {
    const renter = await test.renter(0);
    const payment = paymentOf(renter, 20);
    await heard(payment.completed);
    await heard(payment.disputed);
    expect(await balance(renter)).toMatchObject({ payments_frozen: true, balance_micro: 20 * DOLLAR });
    const body = { offer_id: await test.offer(await test.host()), template_id: await test.template(), disk_gb: 10 };
    const refused = await renter.api.request('POST', '/v1/instances', body);
    expect(refused).toMatchObject({ status: 402, body: { code: 'PAYMENTS_FROZEN' } });
    await heard(payment.won);
    await heard(payment.disputed);
    expect(await balance(renter)).toMatchObject({ payments_frozen: false, balance_micro: 20 * DOLLAR });
  });

  it('that is lost in a dispute is debited like a refund, and what ran on it is stopped', async () => {
    const renter = await test.renter(0);
    const payment = paymentOf(renter, 20);
    await heard(payment.completed);
    const body = { offer_id: await test.offer(await test.host()), template_id: await test.template(), disk_gb: 10 };
    const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
    await statusIs(renter.api, id, 'running');
    await heard(payment.disputed);
    expect((await renter.api.get<InstanceBody>(`/v1/instances/${id}`)).status).toBe('running');
    await heard(payment.lost);
    await heard(payment.lost);
    await statusIs(renter.api, id, 'stopped');
    expect(await balance(renter)).toMatchObject({ payments_frozen: false, balance_micro: 0 });
    expect((await rows(renter)).map(({ kind }) => kind)).toEqual(['dispute', 'payment']);
    await eventually(
      'the release',
      async () => (await renter.api.get<InstanceBody>(`/v1/instances/${id}`))['gpus_released'],
    );
  });

  it.each([
    [
      'what Stripe has taken in dollars',
      [
        { currency: 'usd', amount: -500 },
        { currency: 'jpy', amount: -9 },
      ],
      15,
    ],
    ['the whole payment while Stripe has taken no dollars', [], 0],
  ])('that is lost in another currency is debited by %s', async (_, balance_transactions, left) => {
    const renter = await test.renter(0);
    const payment = paymentOf(renter, 20);
    const dispute = { ...payment.lost[1], currency: 'jpy', amount: 1_000, balance_transactions };
    await heard(payment.completed);
    await heard(['charge.dispute.closed', dispute]);
    expect((await balance(renter)).balance_micro).toBe(left * DOLLAR);
  });

  it('of more than Stripe charges at once is refused, and changes nothing', async () => {
    const renter = await test.renter(0);
    const before = test.dump();
    expect(await tell(...paymentOf(renter, 1_000_000).completed)).toMatchObject({ status: 422 });
    expect(test.dump()).toEqual(before);
    await heard(paymentOf(renter, 999_999).completed);
    expect((await balance(renter)).balance_micro).toBe(999_999 * DOLLAR);
  });

  it('is not frozen by an inquiry, but by the dispute that it becomes', async () => {
    const renter = await test.renter(0);
    const payment = paymentOf(renter, 20);
    const inquiry = (type: string, status: string): Event => [type, { ...payment.disputed[1], status }];
    await heard(payment.completed);
    await heard(inquiry('charge.dispute.created', 'warning_needs_response'));
    await heard(inquiry('charge.dispute.updated', 'warning_under_review'));
    expect(await balance(renter)).toMatchObject({ payments_frozen: false });
    await heard(inquiry('charge.dispute.updated', 'needs_response'));
    expect(await balance(renter)).toMatchObject({ payments_frozen: true });
    await heard(inquiry('charge.dispute.closed', 'warning_closed'));
    expect(await balance(renter)).toMatchObject({ payments_frozen: false, balance_micro: 20 * DOLLAR });
    await heard(inquiry('charge.dispute.updated', 'needs_response'));
    expect(await balance(renter)).toMatchObject({ payments_frozen: false });
  });

  it('never takes back more than was paid', async () => {
    const renter = await test.renter(0);
    const payment = paymentOf(renter, 20);
    for (const event of [payment.completed, payment.refunded(15), payment.disputed, payment.lost]) await heard(event);
    expect((await balance(renter)).balance_micro).toBe(0);
  });

  it('is not frozen for ever by a dispute that an operator has lifted; what is lost later is debited all the same', async () => {
    const renter = await test.renter(5 * DOLLAR);
    const payment = paymentOf(renter, 20);
    await heard(payment.completed);
    await heard(payment.disputed);
    await test.operator.delete(`/v1/operator/organizations/${renter.organizationId}/dispute`);
    await heard(payment.disputed);
    expect(await balance(renter)).toMatchObject({ payments_frozen: false, balance_micro: 25 * DOLLAR });
    await heard(payment.lost);
    expect(await balance(renter)).toMatchObject({ payments_frozen: false, balance_micro: 5 * DOLLAR });
  });

  it('is given back what a refund has taken that failed', async () => {
    const renter = await test.renter(0);
    const payment = paymentOf(renter, 20);
    for (const event of [payment.completed, payment.refunded(5), payment.refund('1', 'pending', 5)]) await heard(event);
    expect((await balance(renter)).balance_micro).toBe(15 * DOLLAR);
    await heard(payment.refund('1', 'failed', 5));
    expect((await balance(renter)).balance_micro).toBe(20 * DOLLAR);
    // Another one, after which Stripe tells of so much in all again.
    for (const event of [payment.refunded(5), payment.refund('2', 'succeeded', 5), payment.refund('1', 'pending', 5)])
      await heard(event);
    expect((await rows(renter)).map(({ kind, amount_micro }) => [kind, amount_micro / DOLLAR])).toEqual([
      ['refund', -5],
      ['refund', 5],
      ['refund', -5],
      ['payment', 20],
    ]);
  });

  it('is given back what a dispute has taken that is won after it was lost, what lifts the balance first', async () => {
    const renter = await test.renter(0);
    const payment = paymentOf(renter, 20);
    for (const event of [payment.completed, payment.disputed, payment.lost, payment.refunded(12)]) await heard(event);
    expect((await balance(renter)).balance_micro).toBe(0);
    await heard(payment.wonLater);
    expect(await balance(renter)).toMatchObject({ balance_micro: 8 * DOLLAR, payments_frozen: false });
    await heard(payment.lost);
    expect((await rows(renter)).map(({ kind, amount_micro }) => [kind, amount_micro / DOLLAR])).toEqual([
      ['refund', -12],
      ['dispute', 20],
      ['dispute', -20],
      ['payment', 20],
    ]);
  });

  it('comes to the same, in whichever order and however often its events come', async () => {
    const kinds = ['completed', 'refunded', 'made', 'failed', 'again', 'disputed', 'lost', 'wonLater'] as const;
    const orders = fc
      .tuple(
        fc.shuffledSubarray([...kinds], { minLength: kinds.length }),
        fc.array(fc.constantFrom(...kinds), { maxLength: 6 }),
      )
      .map(([each, more]) => [...each, ...more]);
    const renter = await test.renter(0);
    await fc.assert(
      fc.asyncProperty(orders, async (order) => {
        const payment = paymentOf(renter, 20);
        const before = (await balance(renter)).balance_micro;
        const [made, failed] = [payment.refund('1', 'pending', 5), payment.refund('1', 'failed', 5)];
        const again = payment.refund('2', 'succeeded', 8);
        const events = { ...payment, refunded: payment.refunded(5), made, failed, again };
        for (const kind of order) await heard(events[kind]);
        expect(await balance(renter)).toMatchObject({ balance_micro: before + 12 * DOLLAR, payments_frozen: false });
        const its = (await rows(renter)).filter(({ reason }) => reason === payment.id);
        expect(its.reduce((sum, { amount_micro }) => sum + amount_micro, 0)).toBe(12 * DOLLAR);
      }),
      { numRuns: 25 },
    );
  });
});
