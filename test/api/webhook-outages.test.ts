import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { join } from 'node:path';
import { backUp } from '../../control-plane/store/backup.js';
import { query } from '../../control-plane/store/sql.js';
import { eventually } from '../../scripts/eventually.js';
import { memoryFolder } from '../harness/memory-folder.js';
import { TestControlPlane } from '../harness/control-plane.js';
import { Hooks, WebhookWorld } from '../harness/webhooks.js';
import { verify, type WebhookReceiver } from '../harness/webhook-receiver.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

let world: WebhookWorld;
let receiver: WebhookReceiver;
let test: TestControlPlane;
let hooks: Hooks;

beforeEach(async () => {
  world = await WebhookWorld.start();
  ({ receiver, test, hooks } = world);
});
afterEach(() => world.stop());

describe('dead endpoints', () => {
  const hang = (dead: string) => {
    receiver.answer = (response, { url }) => {
      if (url !== dead) response.writeHead(204).end();
    };
  };

  it('hold up no other, of their organization or of another', async () => {
    hang('/dead');
    for (let count = 0; count < 9; count++) await hooks.create(receiver.url('/dead'));
    hooks.happen(5);
    test.advance(SECOND);
    // Four of an organization, two of each endpoint.
    await world.received(4, '/dead');
    const other = new Hooks(test, await test.renter(0));
    await other.create(receiver.url('/live'));
    other.happen(20);
    test.advance(SECOND);
    await world.received(20, '/live');
    expect(receiver.at('/dead')).toHaveLength(4);
  });

  it('and slow ones of many organizations leave others a place at once', async () => {
    hang('/slow');
    for (let count = 0; count < 13; count++) {
      const slow = new Hooks(test, await test.renter());
      for (let more = 0; more < 2; more++) await slow.create(receiver.url('/slow'));
      slow.happen(5);
    }
    test.advance(SECOND);
    // From the 25th attempt on, an organization has one.
    await world.received(25, '/slow');
    await hooks.create(receiver.url('/live'));
    hooks.happen(10);
    test.advance(SECOND);
    await world.received(10, '/live');
    expect(receiver.at('/slow')).toHaveLength(25);
  });

  it('get one attempt at a time, ever more seldom', async () => {
    const { id } = await hooks.create(receiver.url('/dead'));
    world.answering(500);
    hooks.happen(30);
    const attempts: number[] = [];
    test.advance(SECOND);
    for (let seconds = 0; seconds < 300; seconds += 10) {
      await world.quiet();
      attempts.push(receiver.at('/dead').length);
      test.advance(10 * SECOND);
    }
    // Two at first, which both fail: one after 30 s, one after two minutes more, and then one in five minutes.
    expect(attempts).toEqual([...Array<number>(3).fill(2), ...Array<number>(12).fill(3), ...Array<number>(15).fill(4)]);
    await world.quiet();
    world.answering(200);
    for (let minutes = 0; minutes < 40; minutes += 5) {
      test.advance(5 * MINUTE);
      await world.quiet();
    }
    expect(await hooks.log(id, '?state=pending')).toEqual([]);
  });
});

describe('a receiver that answers', () => {
  const DAY = 24 * 60 * MINUTE;
  const at = (ms: number) => new Date(test.clock.now() + ms).toUTCString();

  it.each([
    ['503 and a number of seconds', 503, () => '7200', 120 * MINUTE],
    ['429 and a date', 429, () => at(120 * MINUTE), 120 * MINUTE],
    ['less than the wait of the schedule', 503, () => '1', 5 * SECOND],
    ['a date that is over', 503, () => at(-DAY), 5 * SECOND],
    ['more than a day', 429, () => '9'.repeat(400), DAY],
    ['nonsense', 429, () => 'later', 5 * SECOND],
    ['another status', 500, () => '7200', 5 * SECOND],
  ])('%s gets nothing before that', async (_, status, retryAfter, waitMs) => {
    const { id } = await hooks.create(receiver.url());
    test.advance(SECOND);
    receiver.answer = (response) => void response.writeHead(status, { 'retry-after': retryAfter() }).end();
    hooks.happen();
    test.advance(SECOND);
    await world.quiet();
    const { next_attempt_at } = await hooks.delivery(id, { last_status: status });
    expect(Math.round((Date.parse(next_attempt_at ?? '') - test.clock.now()) / SECOND) * SECOND).toBe(waitMs);
    // Others wait, too.
    hooks.happen();
    test.advance(waitMs - 2 * SECOND);
    await world.quiet();
    expect(receiver.received).toHaveLength(1);
    world.answering(204);
    test.advance(3 * SECOND);
    await world.received(2);
  });
});

describe('a control plane', () => {
  it('whose clock is set keeps the waits as they were', async () => {
    const { id } = await hooks.create(receiver.url());
    world.answering(500);
    hooks.happen();
    test.advance(SECOND);
    await world.quiet();
    const [before] = await hooks.log(id);
    const { failing_since } = await hooks.read(id);
    test.clock.step(59 * MINUTE);
    test.advance(SECOND);
    const [after] = await hooks.log(id);
    const stepOf = (one: string | null | undefined, other: string | null | undefined) =>
      Date.parse(other ?? '') - Date.parse(one ?? '');
    expect(stepOf(before?.next_attempt_at, after?.next_attempt_at)).toBe(59 * MINUTE);
    expect(stepOf(failing_since, (await hooks.read(id)).failing_since)).toBe(59 * MINUTE);
    test.advance(3 * SECOND);
    await world.quiet();
    expect(receiver.received).toHaveLength(1);
    test.advance(SECOND);
    await world.received(2);
  });

  it('that cannot write for a while loses no event', async () => {
    const { id } = await hooks.create(receiver.url());
    hooks.happen();
    const { store } = test.core.platform;
    const transact = store.transact.bind(store);
    store.transact = (work) =>
      transact((tx) => {
        work(tx);
        throw new Error('the disk is full');
      });
    test.advance(SECOND);
    store.transact = transact;
    test.advance(SECOND);
    await hooks.delivery(id, { state: 'delivered' });
  });

  it('that is killed between claim and result sends again', async () => {
    const { id, secret } = await hooks.create(receiver.url());
    receiver.answer = () => {};
    hooks.happen();
    test.advance(SECOND);
    await world.received(1);
    const copy = join(memoryFolder('gpurent-copy-'), 'copy.db');
    backUp(test.databaseFile, copy);
    const left = { database: copy, secretKey: test.secretKey, at: test.clock.now() };
    const next = await TestControlPlane.start({ left, webhooks: receiver.reachable });
    receiver.answer = (response) => void response.end();
    next.advance(SECOND);
    next.advance(MINUTE);
    const [first, again] = await world.received(2);
    expect(again?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
    if (again) verify(again, secret, next.clock.now());
    const its = query.selectFrom('webhook_deliveries').selectAll().where('endpoint_id', '=', id);
    await eventually('the result', () => {
      const [delivery] = next.core.platform.store.transact((tx) => tx.all(its));
      return delivery?.state === 'delivered' && delivery.attempts === 2;
    });
    await next.stop();
  });

  it('that stops breaks off what is under way, and sends it after the start', async () => {
    const { id } = await hooks.create(receiver.url());
    receiver.answer = () => {};
    hooks.happen();
    test.advance(SECOND);
    await world.received(1);
    await test.restart();
    expect(await hooks.log(id)).toMatchObject([{ state: 'pending', attempts: 0, last_error: null }]);
    receiver.answer = (response) => void response.end();
    test.advance(SECOND);
    expect(await hooks.delivery(id, { state: 'delivered' })).toMatchObject({ attempts: 1 });
    expect(test.logged(50)).toEqual([]);
  });
});
