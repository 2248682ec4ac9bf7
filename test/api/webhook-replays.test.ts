import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { noteExpired } from '../../control-plane/services/events/record.js';
import { query } from '../../control-plane/store/sql.js';
import { eventually } from '../../scripts/eventually.js';
import type { TestControlPlane } from '../harness/control-plane.js';
import { WebhookWorld, type Hooks } from '../harness/webhooks.js';
import { verify, type WebhookReceiver } from '../harness/webhook-receiver.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

let world: WebhookWorld;
let receiver: WebhookReceiver;
let test: TestControlPlane;
let hooks: Hooks;

beforeEach(async () => {
  world = await WebhookWorld.start();
  ({ receiver, test, hooks } = world);
});
afterEach(() => world.stop());

describe('a test', () => {
  it('is sent at once and once, before what waits, and says nothing about the endpoint', async () => {
    const { id, secret } = await hooks.create(receiver.url());
    world.answering(500);
    const sent = await hooks.post<{ id: string }>(`/v1/webhook-endpoints/${id}/test`);
    const failed = await hooks.delivery(id, { state: 'failed' });
    expect(failed).toMatchObject({ id: sent.id, type: 'webhook.test', event_id: null, attempts: 1, last_status: 500 });
    expect((await hooks.read(id)).failing_since).toBeNull();
    world.answering(200);
    await hooks.post(`/v1/webhook-deliveries/${sent.id}/replay`);
    await hooks.delivery(id, { state: 'delivered' });
    const [, message] = receiver.received;
    if (!message) throw new Error('nothing came');
    expect(verify(message, secret, test.clock.now())).toMatchObject({
      type: 'webhook.test',
      subject: `webhook-endpoints/${id}`,
    });
  });
});

describe('a replay', () => {
  it('of one delivery has its id', async () => {
    const { id } = await hooks.create(receiver.url());
    hooks.happen();
    test.advance(SECOND);
    const { id: first } = await hooks.delivery(id, { state: 'delivered' });
    await hooks.post(`/v1/webhook-deliveries/${first}/replay`);
    const [one, again] = await world.received(2);
    expect(again?.headers['webhook-id']).toBe(first);
    expect(again?.body).toBe(one?.body);
    expect(await hooks.log(id)).toHaveLength(1);
  });

  it('that is asked for while an attempt is under way is sent, whatever that attempt leads to', async () => {
    const { id } = await hooks.create(receiver.url());
    let answer: () => void = () => undefined;
    const answered = new Promise<void>((resolve) => (answer = resolve));
    receiver.answer = (response) => void answered.then(() => response.writeHead(500).end());
    hooks.happen();
    test.advance(SECOND);
    await world.received(1);
    await hooks.change(id, { enabled: false });
    await hooks.change(id, { enabled: true });
    const [delivery] = await hooks.log(id);
    await hooks.post(`/v1/webhook-deliveries/${delivery?.id ?? ''}/replay`);
    world.answering(200);
    answer();
    expect(await hooks.delivery(id, { state: 'delivered' })).toMatchObject({ attempts: 1, last_status: 200 });
    expect(receiver.received).toHaveLength(2);
  });

  it('of everything since a time or an event delivers it again', async () => {
    const { id } = await hooks.create(receiver.url());
    world.answering(500);
    for (let count = 1; count <= 5; count++) {
      hooks.happen(1, count);
      test.advance(MINUTE);
    }
    await eventually('failures', async () => (await hooks.read(id)).failing_since !== null);
    // It was off for a while, so nobody tries these any more.
    await hooks.change(id, { enabled: false });
    hooks.happen(1, 6);
    await hooks.change(id, { enabled: true });
    world.answering(200);
    receiver.received.length = 0;
    const since = new Date(test.clock.now() - 2 * MINUTE).toISOString();
    const path = `/v1/webhook-endpoints/${id}/replay`;
    // Those of the last two minutes, and both switches.
    expect(await hooks.post(path, { since })).toMatchObject({ events: 4 });
    const amounts = () =>
      receiver.received
        .map((one) => JSON.parse(one.body) as { data: { amount_micro?: number } })
        .flatMap(({ data }) => data.amount_micro ?? [])
        .sort();
    await eventually('the last ones', () => amounts().length === 3);
    expect(amounts()).toEqual([4, 5, 6]);
    const log = await hooks.log(id);
    const oldest = log.find(({ event_id }) => event_id !== null && Number(event_id.split('.')[1]) <= 2);
    await hooks.post(path, { after_id: oldest?.event_id });
    await eventually('all after it', () => amounts().length > 5);
    for (const [body, code] of [
      [{}, 'VALIDATION_FAILED'],
      [{ since, after_id: await hooks.eventId(1) }, 'VALIDATION_FAILED'],
      [{ since: 'yesterday' }, 'VALIDATION_FAILED'],
      [{ after_id: await hooks.eventId(9_999) }, 'EVENTS_EXPIRED'],
      [{ after_id: 'x' }, 'EVENTS_EXPIRED'],
    ] as const)
      expect((await hooks.renter.api.request<{ code: string }>('POST', path, body)).body.code).toBe(code);
  });

  it('goes back 10,000 events at most', async () => {
    const { id } = await hooks.create(receiver.url(), { types: ['member.left'] });
    hooks.happen(10_050);
    const path = `/v1/webhook-endpoints/${id}/replay`;
    const refused = await hooks.renter.api.request('POST', path, { since: '2020-01-01T00:00:00Z' });
    expect(refused).toMatchObject({ status: 422, body: { details: [{ path: 'since' }] } });
    const before = await hooks.renter.api.request('POST', path, { after_id: await hooks.eventId(49) });
    expect(before).toMatchObject({ status: 422, body: { details: [{ path: 'after_id' }] } });
    test.clock.advance(MINUTE);
    hooks.happen(7);
    expect(await hooks.post(path, { since: new Date(test.clock.now()).toISOString() })).toEqual({ events: 7 });
    expect(await hooks.post(path, { after_id: await hooks.eventId(100) })).toEqual({ events: 9_958 });
  });

  it('of what is no longer kept is refused', async () => {
    const { id } = await hooks.create(receiver.url());
    hooks.happen(3);
    test.advance(SECOND);
    await world.received(3);
    const second = await hooks.eventId(2);
    const first = (await hooks.log(id)).find(({ event_id }) => event_id === second);
    const { store } = test.core.platform;
    store.transact((tx) => tx.run(query.deleteFrom('events').where('number', '=', 2)));
    const path = `/v1/webhook-deliveries/${first?.id}/replay`;
    expect((await hooks.renter.api.request('POST', path)).body).toMatchObject({ code: 'EVENTS_EXPIRED' });
  });
});

it('events that expired before they were delivered are in the log', async () => {
  const { id } = await hooks.create(receiver.url());
  hooks.happen(5);
  const { store } = test.core.platform;
  store.transact((tx) => {
    tx.run(query.deleteFrom('events').where('number', '<=', 3));
    noteExpired(tx, hooks.renter.organizationId, 3);
  });
  test.advance(SECOND);
  await world.received(2);
  hooks.happen();
  test.advance(SECOND);
  await world.received(3);
  const log = await hooks.log(id);
  expect(log.filter(({ type }) => type === 'webhook.gap')).toMatchObject([
    { state: 'failed', last_error: 'events_expired', event_id: null },
  ]);
  const gap = log.find(({ type }) => type === 'webhook.gap');
  expect((await hooks.renter.api.request('POST', `/v1/webhook-deliveries/${gap?.id}/replay`)).body).toMatchObject({
    code: 'EVENTS_EXPIRED',
  });
});

describe('what is kept is bounded:', () => {
  const count = (id: string, state?: string) => {
    const its = query.selectFrom('webhook_deliveries').select('id').where('endpoint_id', '=', id);
    const { store } = test.core.platform;
    return store.transact((tx) => tx.all(state === undefined ? its : its.where('state', '=', state as never))).length;
  };
  const finishAll = () => {
    const done = { state: 'delivered' as const, finished_at: test.clock.now() };
    const all = query.updateTable('webhook_deliveries').set(done).where('state', '=', 'pending');
    test.core.platform.store.transact((tx) => tx.run(all));
  };

  it('pending deliveries of an endpoint, the rest waits in the stream', async () => {
    const { id } = await hooks.create(receiver.url());
    world.answering(500);
    hooks.happen(3_000);
    for (let runs = 0; runs < 20; runs++) test.advance(SECOND);
    expect(count(id, 'pending')).toBe(1_000);
    const sent = await hooks.renter.api.request('POST', `/v1/webhook-endpoints/${id}/test`);
    expect(sent).toMatchObject({ status: 409, body: { code: 'LIMIT_REACHED', limit: 1_000 } });
    finishAll();
    await test.restart();
    for (let runs = 0; runs < 20; runs++) test.advance(SECOND);
    expect(count(id, 'pending')).toBe(1_000);
  });

  it('the log of an endpoint, by number and by age', async () => {
    const { id } = await hooks.create(receiver.url());
    world.answering(500);
    for (let round = 0; round < 3; round++) {
      hooks.happen(1_000);
      for (let runs = 0; runs < 10; runs++) test.advance(SECOND);
      await world.quiet();
      finishAll();
    }
    expect(count(id)).toBe(2_000);
    const stranger = randomUUID();
    expect(count(stranger)).toBe(0);
    test.clock.advance(31 * DAY);
    for (let runs = 0; runs < 5; runs++) test.advance(MINUTE);
    expect(count(id)).toBe(0);
  });
});
