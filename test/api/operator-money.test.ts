import BetterSqlite3 from 'better-sqlite3';
import type { Compilable } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { REVENUE_ORDER, revenueOf } from '../../control-plane/services/billing/reports/revenue.js';
import { restOf } from '../../control-plane/services/system/pages.js';
import { isUuid } from '../../shared/ids.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { DAY_MS, DISK_MICRO, GPU_MICRO, HOUR_MS, makePoor } from '../harness/poor.js';
import { StripeDouble, type BalanceTransaction } from '../harness/stripe-double.js';

const DOLLAR = 1_000_000;

let stripe: StripeDouble;
let test: TestControlPlane;
beforeAll(async () => {
  stripe = await StripeDouble.start();
  test = await TestControlPlane.start({ stripe: stripe.settings });
});
afterAll(async () => {
  await test.stop();
  await stripe.stop();
});

const credits = ({ organizationId }: Renter) => `/v1/operator/organizations/${organizationId}/credits`;

describe('A credit', () => {
  it('is granted once with the same Idempotency-Key, and another one is not granted with it', async () => {
    const [renter, other] = [await test.renter(0), await test.renter(0)];
    const send = (body: object, to = renter) =>
      test.operator.request<{ id: string }>('POST', credits(to), body, { 'Idempotency-Key': 'k1' });
    const grant = { amount_micro: DOLLAR, reason: 'thanks' };
    expect(await send({ ...grant, amount_micro: 1e12 + 1 })).toMatchObject({ status: 422 });
    const first = await send(grant);
    expect(first).toMatchObject({ status: 201, body: { ...grant, balance_micro: DOLLAR } });
    expect(isUuid(first.body.id)).toBe(true);
    await test.operator.post(credits(renter), grant);
    const before = test.dump();
    const again = await send(grant);
    expect(again).toMatchObject({ status: 201, body: { id: first.body.id, balance_micro: 2 * DOLLAR } });
    expect([first, again].map(({ headers }) => headers.get('idempotent-replayed'))).toEqual([null, 'true']);
    for (const changed of [{ amount_micro: 2 * DOLLAR }, { reason: 'more thanks' }])
      expect(await send({ ...grant, ...changed })).toMatchObject({
        status: 409,
        body: { code: 'IDEMPOTENCY_KEY_REUSED' },
      });
    expect(test.dump()).toEqual(before);
    expect(await send(grant, other)).toMatchObject({ status: 201, body: { balance_micro: DOLLAR } });
  });

  it('may be negative, with a reason, and what follows from a balance of nothing follows', async () => {
    const poor = await makePoor(test, await test.template());
    const { renter, id } = poor;
    const reason = 'granted by mistake';
    const taken = await test.operator.post(credits(renter), { amount_micro: -2 * GPU_MICRO, reason });
    expect(taken).toMatchObject({ amount_micro: -2 * GPU_MICRO, balance_micro: 0, reason });
    await statusIs(renter.api, id, 'stopped');
    const { items } = await renter.api.get<{ items: object[] }>('/v1/billing/transactions?kind=credit&limit=1');
    expect(items).toMatchObject([{ kind: 'credit', amount_micro: -2 * GPU_MICRO, reason }]);
    const log = await test.operator.get<{ items: object[] }>('/v1/operator/audit-log?limit=1');
    expect(log.items).toMatchObject([
      { action: 'organization.credit', details: { amount_micro: -2 * GPU_MICRO, reason } },
    ]);
  });

  it('is not of nothing, and brings no balance below what is counted exactly', async () => {
    const renter = await test.renter(0);
    const before = test.dump();
    const refused = async (amount_micro: number) =>
      test.operator.request('POST', credits(renter), { amount_micro, reason: 'x' });
    for (const amount of [0, -1_000_000_000_001])
      expect(await refused(amount)).toMatchObject({ status: 422, body: { code: 'VALIDATION_FAILED' } });
    expect(test.dump()).toEqual(before);
    const most = 1_000_000_000_000_000;
    test.setBalance(renter.organizationId, 1 - most);
    expect(await refused(-2)).toMatchObject({ status: 422, body: { code: 'VALIDATION_FAILED' } });
    expect((await refused(-1)).status).toBe(201);
  });
});

describe('An operator', () => {
  it('reads the ledger of an organization in pages, as its members do', async () => {
    const renter = await test.renter(5 * DOLLAR);
    for (const amount_micro of [1, 2, 3]) await test.operator.post(credits(renter), { amount_micro, reason: 'more' });
    const path = `/v1/operator/organizations/${renter.organizationId}/transactions`;
    const own = await renter.api.get<{ items: object[] }>('/v1/billing/transactions');
    expect(await test.operator.get(path)).toEqual({ ...own, next_cursor: null });
    const first = await test.operator.get<{ items: object[]; next_cursor: string }>(`${path}?limit=3&kind=credit`);
    const second = await test.operator.get<{ items: object[] }>(`${path}?limit=3&cursor=${first.next_cursor}`);
    expect([...first.items, ...second.items]).toEqual(own.items);
  });

  it('sees what each machine has earned on each day', async () => {
    test.clock.advance(DAY_MS - (test.clock.now() % DAY_MS));
    const templateId = await test.template();
    const [one, two] = [await makePoor(test, templateId, 2), await makePoor(test, templateId)];
    await one.pass(HOUR_MS);
    await two.pass(0);
    await one.renter.api.post(`/v1/instances/${one.id}/stop`);
    await statusIs(one.renter.api, one.id, 'stopped');
    await test.operator.post(credits(one.renter), { amount_micro: 1_000 * GPU_MICRO, reason: 'test' });
    await one.pass(DAY_MS);
    const today = test.clock.now() - (test.clock.now() % DAY_MS);
    const dateOf = (ago: number) => new Date(today - ago * DAY_MS).toISOString().slice(0, 10);
    const [machine, other] = [one.agent.hostId, two.agent.hostId];
    const rows = async (query: string) =>
      await test.operator.get<{ items: { machine_id: string }[]; next_cursor?: string }>(
        `/v1/operator/revenue?${query}`,
      );
    const expected = [
      { date: dateOf(0), machine_id: machine, gpu_micro: GPU_MICRO, disk_micro: DISK_MICRO },
      { date: dateOf(1), machine_id: machine, gpu_micro: 25 * GPU_MICRO, disk_micro: 23 * DISK_MICRO },
    ];
    expect((await rows(`days=2&machine_id=${machine}`)).items).toMatchObject(expected);
    expect((await rows(`days=1&machine_id=${machine}`)).items).toMatchObject(expected.slice(0, 1));
    const all = (await rows('days=2')).items;
    expect(all).toEqual(expect.arrayContaining(expected.map((row) => expect.objectContaining(row) as object)));
    expect(all.map(({ machine_id }) => machine_id)).toContain(other);
    const paged: object[] = [];
    for (let cursor = ''; ;) {
      const page = await rows(`days=2&limit=1${cursor}`);
      paged.push(...page.items);
      if (!page.next_cursor) break;
      cursor = `&cursor=${page.next_cursor}`;
    }
    expect(paged).toEqual(all);
  });

  it('waits no longer for that as it grows', () => {
    const database = new BetterSqlite3(test.databaseFile, { readonly: true });
    const planOf = (rows: Compilable) => {
      const { sql, parameters } = rows.compile();
      const plan = database.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters);
      return plan.map(({ detail }) => detail).join('; ');
    };
    const cursor = Buffer.from('[2,9]').toString('base64url');
    for (const request of [{}, { cursor }, { machine_id: 'm' }, { machine_id: 'm', cursor }]) {
      const plan = planOf(restOf(revenueOf(1, request), request, REVENUE_ORDER.by));
      expect(plan).toMatch(/^SEARCH machine_days USING INDEX/);
      expect(plan).not.toMatch(/TEMP|SCAN/);
    }
    database.close();
  });
});

describe('A payout of Stripe', () => {
  const tell = async (type: string, object: object) => {
    const { payload, signature } = stripe.event(type, object, test.clock.now());
    const headers = { 'Content-Type': 'application/json', 'Stripe-Signature': signature };
    const url = `${test.api.baseUrl}/v1/webhooks/stripe`;
    expect((await fetch(url, { method: 'POST', headers, body: payload })).status).toBe(200);
  };
  const paid = (renter: Renter, id: string, dollars: number) =>
    tell('checkout.session.completed', {
      id: `cs_${id}`,
      payment_intent: id,
      currency: 'usd',
      metadata: { gpurent_organization_id: renter.organizationId },
      amount_total: dollars * 100,
      payment_status: 'paid',
    });
  const moved = (reporting_category: string, dollars: number, source: object | null): BalanceTransaction => ({
    id: `txn_${Math.random().toString(36).slice(2)}`,
    type: reporting_category,
    reporting_category,
    amount: dollars * 100,
    fee: reporting_category === 'charge' ? 59 : 0,
    source,
  });

  it('is held against the ledger, entry by entry', async () => {
    const renter = await test.renter(0);
    const of = (name: string) => ({ id: `x_${name}`, payment_intent: `pi_${name}` });
    for (const name of ['a', 'b', 'c']) await paid(renter, `pi_${name}`, 20);
    await tell('refund.created', { ...of('a'), currency: 'usd', amount: 500, status: 'pending' });
    await tell('charge.dispute.created', { ...of('b'), currency: 'usd', amount: 2_000, status: 'needs_response' });
    stripe.payouts.set('po_1', [
      moved('payout', -100, null),
      moved('charge', 20, of('a')),
      moved('charge', 19, of('b')),
      moved('charge', 20, of('unheard')),
      moved('refund', -5, of('a')),
      moved('refund', -5, of('c')),
      moved('dispute', -20, of('b')),
      moved('fee', -1, null),
    ]);
    const { items, next_cursor } = await test.operator.get<{ items: Record<string, unknown>[]; next_cursor: null }>(
      '/v1/operator/payouts/po_1/entries',
    );
    expect(next_cursor).toBeNull();
    expect(items.map(({ kind, payment_id, in_ledger }) => [kind, payment_id, in_ledger])).toEqual([
      ['payment', 'pi_a', true],
      ['payment', 'pi_b', false],
      ['payment', 'pi_unheard', null],
      ['refund', 'pi_a', true],
      ['refund', 'pi_c', false],
      ['dispute', 'pi_b', false],
      ['other', null, null],
    ]);
    expect(items[0]).toMatchObject({
      organization_id: renter.organizationId,
      organization_name: "Renter's organization",
      amount_micro: 20 * DOLLAR,
      fee_micro: 590_000,
    });
    await tell('charge.dispute.closed', { ...of('b'), currency: 'usd', amount: 2_000, status: 'lost' });
    const after = await test.operator.get<{ items: object[] }>('/v1/operator/payouts/po_1/entries');
    expect(after.items[5]).toMatchObject({ kind: 'dispute', in_ledger: true });
    const { items: payments } = await test.operator.get<{ items: object[] }>('/v1/operator/payments?limit=3');
    expect(payments).toMatchObject([
      { id: 'pi_c', provider: 'stripe', paid_micro: 20 * DOLLAR, credited_micro: 20 * DOLLAR },
      { id: 'pi_b', dispute_debited_micro: 20 * DOLLAR, organization_name: "Renter's organization" },
      { id: 'pi_a', organization_id: renter.organizationId, refund_debited_micro: 5 * DOLLAR },
    ]);
  });

  it('is read a hundred entries at a time, and may be unknown', async () => {
    stripe.payouts.set(
      'po_2',
      Array.from({ length: 150 }, () => moved('fee', -1, null)),
    );
    const path = '/v1/operator/payouts/po_2/entries';
    const first = await test.operator.get<{ items: object[]; next_cursor: string }>(path);
    const second = await test.operator.get<{ items: object[]; next_cursor: null }>(
      `${path}?cursor=${first.next_cursor}`,
    );
    expect([first.items.length, second.items.length, second.next_cursor]).toEqual([100, 50, null]);
    const few = await test.operator.get<{ items: object[] }>(`${path}?limit=7`);
    expect(few.items).toEqual(first.items.slice(0, 7));
    const strange = await test.operator.request('GET', `${path}?cursor=txn_nothing`);
    expect(strange).toMatchObject({ status: 422, body: { details: [{ path: 'cursor' }] } });
    stripe.payouts.set('po_euro', [{ ...moved('charge', 20, null), currency: 'eur' }]);
    const euro = await test.operator.request('GET', '/v1/operator/payouts/po_euro/entries');
    expect(euro).toMatchObject({ status: 422, body: { message: expect.stringContaining('US dollars') as string } });
    const unknown = await test.operator.request('GET', '/v1/operator/payouts/po_3/entries');
    expect(unknown).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
  });
});
