import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { query } from '../../control-plane/store/sql.js';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane } from '../harness/control-plane.js';
import { Hooks, WebhookWorld } from '../harness/webhooks.js';
import { freePort, verify, type WebhookReceiver } from '../harness/webhook-receiver.js';

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

describe('an event', () => {
  it('is delivered once, signed by the specification, in the envelope of the stream', async () => {
    const { id, secret } = await hooks.create(receiver.url());
    receiver.answer = (response) => void response.writeHead(200).end('thank\u0000 you');
    const time = new Date(test.clock.now()).toISOString();
    hooks.happen();
    test.advance(SECOND);
    const delivery = await hooks.delivery(id, { state: 'delivered' });
    expect(delivery).toMatchObject({ type: 'billing.credited', attempts: 1, last_status: 200, last_error: null });
    expect(delivery).toMatchObject({ last_answer: 'thank\ufffd you', next_attempt_at: null });
    const [message, ...more] = await world.received(1);
    test.advance(DAY);
    expect(more).toEqual([]);
    if (!message) throw new Error('nothing came');
    expect(message.headers).toMatchObject({ 'webhook-id': delivery.id, 'content-type': 'application/json' });
    expect(verify(message, secret, test.clock.now() - DAY)).toEqual({
      specversion: '1.0',
      id: delivery.event_id,
      source: `/v1/orgs/${hooks.renter.organizationId}`,
      type: 'billing.credited',
      subject: 'billing',
      time,
      data: { amount_micro: 1, balance_micro: 0, reason: null },
    });
    const metrics = await (await fetch(`${test.url}/metrics`)).text();
    expect(metrics).toContain('gpurent_webhook_attempts_total{outcome="delivered"} 1');
    expect(metrics).toContain('gpurent_webhooks_pending 0');
    const { secret: other } = await hooks.create(receiver.url());
    expect(() => verify(message, other, test.clock.now() - DAY)).toThrow('No matching signature');
    expect(() => verify({ ...message, body: `${message.body} ` }, secret, test.clock.now() - DAY)).toThrow();
  });

  it('goes to the endpoints whose filters it matches', async () => {
    const { platform } = test.core;
    const { organizationId } = hooks.renter;
    await hooks.create(receiver.url('/all'));
    await hooks.create(receiver.url('/credits'), { types: ['billing.credited', 'billing.paid'] });
    await hooks.create(receiver.url('/others'), { types: ['member.left'] });
    const agent = await test.host();
    const body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
    test.setBalance(organizationId, 100_000_000);
    const { id: instance } = await hooks.post<{ id: string }>('/v1/instances', body);
    await hooks.create(receiver.url('/instance'), { instance_id: instance });
    test.advance(SECOND);
    await eventually('the instance', async () => {
      const { status } = await hooks.renter.api.get<{ status: string }>(`/v1/instances/${instance}`);
      return status === 'running';
    });
    hooks.happen();
    expect(platform.webhookNetworks).toEqual(['127.0.0.1/32']);
    test.advance(SECOND);
    const credits = await world.received(1, '/credits');
    const all = await eventually('everything', () => {
      const types = receiver.at('/all').map((one) => (JSON.parse(one.body) as { type: string }).type);
      return types.includes('billing.credited') && types.includes('instance.status_changed') && types;
    });
    expect(credits.map((one) => (JSON.parse(one.body) as { type: string }).type)).toEqual(['billing.credited']);
    await world.received(1, '/instance');
    for (const one of receiver.at('/instance'))
      expect(JSON.parse(one.body)).toMatchObject({ subject: `instances/${instance}` });
    expect(receiver.at('/others')).toEqual([]);
    expect(all.length).toBeGreaterThan(receiver.at('/instance').length);
  });

  it('is tried again over three days, with the same id, and then given up', async () => {
    const { id, secret } = await hooks.create(receiver.url());
    world.answering(503);
    hooks.happen();
    test.advance(SECOND);
    let began = test.clock.now();
    const waits: number[] = [];
    for (let attempt = 1; attempt < 10; attempt++) {
      await world.quiet();
      const { next_attempt_at } = await hooks.delivery(id, { attempts: attempt, last_error: 'status' });
      const next = Date.parse(next_attempt_at ?? '');
      waits.push((next - began) / SECOND);
      // It is not early.
      test.advance(next - test.clock.now() - 1);
      test.advance(1);
      began = test.clock.now();
    }
    const H = 3_600;
    expect(waits).toEqual([5, 300, 1_800, 2 * H, 5 * H, 10 * H, 14 * H, 20 * H, 24 * H]);
    const failed = await hooks.delivery(id, { state: 'failed' });
    expect(failed).toMatchObject({ attempts: 10, last_status: 503, next_attempt_at: null });
    test.advance(DAY);
    expect(receiver.received).toHaveLength(10);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id']))).toEqual(new Set([failed.id]));
    // Each attempt is signed with its own time.
    const last = receiver.received.at(-1);
    if (last) verify(last, secret, began);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-timestamp'])).size).toBe(10);
    expect((await hooks.read(id)).failing_since).not.toBeNull();
    world.answering(200);
    hooks.happen();
    test.advance(SECOND);
    await hooks.delivery(id, { state: 'delivered' });
    expect((await hooks.read(id)).failing_since).toBeNull();
  });
});

describe('a receiver', () => {
  it('that redirects is not followed', async () => {
    const { id } = await hooks.create(receiver.url());
    receiver.answer = (response, { url }) => {
      if (url === '/hooks') response.writeHead(307, { location: receiver.url('/inside', '127.0.0.1') });
      response.end();
    };
    hooks.happen();
    test.advance(SECOND);
    await hooks.delivery(id, { attempts: 1, last_error: 'redirected', last_status: 307 });
    expect(receiver.at('/inside')).toEqual([]);
  });

  it('that does not answer is left after 15 seconds', async () => {
    const { id } = await hooks.create(receiver.url());
    let isClosed = false;
    receiver.answer = (response) => response.once('close', () => (isClosed = true));
    hooks.happen();
    test.advance(SECOND);
    await world.received(1);
    test.clock.advance(15 * SECOND - 1);
    expect(await hooks.log(id)).toMatchObject([{ state: 'pending', last_error: null }]);
    test.clock.advance(1);
    await hooks.delivery(id, { state: 'pending', last_error: 'timed_out', last_status: null });
    await eventually('the end of the connection', () => isClosed);
  });

  it.each([
    [200, 'delivered', null],
    [500, 'pending', 'status'],
  ])('whose body never ends is read for 16 KiB; its status %s counts', async (status, state, last_error) => {
    const { id } = await hooks.create(receiver.url());
    let sent = 0;
    receiver.answer = (response) => {
      response.writeHead(status);
      const more = () => {
        sent += 1;
        if (!response.destroyed && response.write('x'.repeat(1_024))) setImmediate(more);
        else response.once('drain', more);
      };
      more();
    };
    hooks.happen();
    test.advance(SECOND);
    const delivery = await hooks.delivery(id, { state, last_error, last_status: status });
    expect(delivery.last_answer).toBe('x'.repeat(1_024));
    expect(sent).toBeGreaterThan(1);
  });

  it('whose body stops in the middle is left after 15 seconds; its status counts', async () => {
    const { id } = await hooks.create(receiver.url());
    let isWritten = false;
    receiver.answer = (response) => void response.writeHead(202).write('so far', () => (isWritten = true));
    hooks.happen();
    test.advance(SECOND);
    await eventually('the beginning', () => isWritten);
    // What the kernel has is read within these turns.
    for (let turn = 0; turn < 20; turn++) await nextTurn();
    test.clock.advance(15 * SECOND - 1);
    expect(await hooks.log(id)).toMatchObject([{ state: 'pending', last_status: null }]);
    test.clock.advance(1);
    await hooks.delivery(id, { state: 'delivered', last_answer: 'so far' });
    expect(await hooks.log(id)).toMatchObject([{ last_status: 202 }]);
  });

  it('that sends informational answers without end is left', async () => {
    const { id } = await hooks.create(receiver.url());
    receiver.answer = (response) => {
      const more = () => {
        if (response.destroyed) return;
        response.writeEarlyHints({ link: '</x>; rel=preload' });
        setImmediate(more);
      };
      more();
    };
    hooks.happen();
    test.advance(SECOND);
    await hooks.delivery(id, { last_error: 'bad_answer', last_status: null });
  });

  it.each([
    ['no HTTP', 'SSH-2.0-OpenSSH_9.2\r\n', 'bad_answer'],
    ['more headers than 16 KiB', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(17_000)}\r\n\r\n`, 'bad_answer'],
    [
      'another protocol',
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n',
      'unreachable',
    ],
    ['nothing', '', 'unreachable'],
  ])('that answers %s has failed', async (_what, answer, last_error) => {
    const { id } = await hooks.create(receiver.url());
    receiver.answer = ({ socket }) => void socket?.end(answer);
    hooks.happen();
    test.advance(SECOND);
    await hooks.delivery(id, { last_error, last_status: null });
  });

  it('that has gone away has failed', async () => {
    const { id } = await hooks.create(`https://hooks.example:${await freePort()}/`);
    hooks.happen();
    test.advance(SECOND);
    await hooks.delivery(id, { last_error: 'unreachable' });
  });

  it('whose certificate nobody trusts, or that has another name, gets nothing', async () => {
    const { id } = await hooks.create(receiver.url('/hooks', 'other.example'));
    hooks.happen();
    test.advance(SECOND);
    await hooks.delivery(id, { last_error: 'certificate' });
    expect(receiver.received).toEqual([]);
  });

  it('that answers 410 is switched off at once, which the organization learns', async () => {
    const { id } = await hooks.create(receiver.url('/gone'));
    await hooks.create(receiver.url('/watch'), { types: ['webhook.disabled'] });
    receiver.answer = (response, { url }) => void response.writeHead(url === '/gone' ? 410 : 200).end();
    hooks.happen(3);
    test.advance(SECOND);
    await eventually('the switch', async () => !(await hooks.read(id)).enabled);
    expect(await hooks.read(id)).toMatchObject({ enabled: false, disabled_reason: 'gone' });
    expect(new Set((await hooks.log(id)).map(({ state }) => state))).toEqual(new Set(['failed']));
    test.advance(SECOND);
    const [told] = await world.received(1, '/watch');
    const { data, subject } = JSON.parse(told?.body ?? '') as { data: object; subject: string };
    expect(data).toEqual({ webhook_endpoint_id: id, reason: 'gone' });
    expect(subject).toBe(`webhook-endpoints/${id}`);
    const before = receiver.at('/gone').length;
    hooks.happen();
    test.advance(DAY);
    expect(receiver.at('/gone')).toHaveLength(before);
  });

  it('that has only failed for five days is switched off', async () => {
    const { id } = await hooks.create(receiver.url());
    world.answering(500);
    const start = test.clock.now();
    for (let hours = 0; hours < 200 && (await hooks.read(id)).enabled; hours += 4) {
      if (hours % 24 === 0) hooks.happen();
      test.advance(4 * HOUR);
      await world.quiet();
    }
    expect(await hooks.read(id)).toMatchObject({ enabled: false, disabled_reason: 'failing' });
    const days = (test.clock.now() - start) / DAY;
    expect(days).toBeGreaterThan(4.9);
    expect(days).toBeLessThan(7);
  });
});

describe('a name', () => {
  it('is resolved once for each attempt, and the connection goes to the address that was vetted', async () => {
    const { id } = await hooks.create(receiver.url());
    // A second question would be answered with an address that is forbidden.
    world.addresses = [['127.0.0.1'], ['127.0.0.2']];
    hooks.happen();
    test.advance(SECOND);
    await hooks.delivery(id, { state: 'delivered' });
    expect(world.asked).toBe(1);
    hooks.happen();
    test.advance(SECOND);
    await hooks.delivery(id, { last_error: 'forbidden_address' });
    expect(receiver.received).toHaveLength(1);
  });

  it.each([
    [['127.0.0.1', '127.0.0.2'], 'forbidden_address'],
    [['127.0.0.1', '::1'], 'forbidden_address'],
    [['169.254.169.254'], 'forbidden_address'],
    [['::ffff:127.0.0.2'], 'forbidden_address'],
    [['nonsense'], 'forbidden_address'],
    [[], 'unresolved'],
  ])('with the addresses %j is not dialled: %s', async (found, last_error) => {
    const { id } = await hooks.create(receiver.url());
    world.addresses = [found];
    hooks.happen();
    test.advance(SECOND);
    await hooks.delivery(id, { last_error, last_status: null });
    expect(receiver.received).toEqual([]);
  });

  it('whose first address does not answer is reached at the next one', async () => {
    const resolve = async () => ['127.0.0.3', '127.0.0.1'];
    const other = await TestControlPlane.start({ webhooks: { ...receiver.reachable, resolve } });
    const its = new Hooks(other, await other.renter(0));
    const { id } = await its.create(receiver.url());
    its.happen();
    other.advance(SECOND);
    await its.delivery(id, { state: 'delivered' });
    await other.stop();
  });

  it('that is never resolved costs 15 seconds', async () => {
    const { id } = await hooks.create(receiver.url());
    world.addresses = [new Promise(() => undefined)];
    hooks.happen();
    test.advance(SECOND);
    await eventually('the question', () => world.asked > 0);
    test.clock.advance(15 * SECOND);
    await hooks.delivery(id, { last_error: 'timed_out' });
  });
});

describe('a secret', () => {
  it('that is replaced signs for a day beside the new one', async () => {
    const { id, secret: first } = await hooks.create(receiver.url());
    const rotate = async () =>
      (await hooks.post<{ secret: string }>(`/v1/webhook-endpoints/${id}/rotate-secret`)).secret;
    const second = await rotate();
    hooks.happen();
    test.advance(SECOND);
    const [both] = await world.received(1);
    if (!both) throw new Error('nothing came');
    expect(both.headers['webhook-signature']).toMatch(/^v1,\S+ v1,\S+$/);
    for (const secret of [first, second]) verify(both, secret, test.clock.now());
    // No worker has deleted the previous secret yet.
    test.clock.advance(DAY);
    await hooks.post(`/v1/webhook-endpoints/${id}/test`);
    const [, one] = await world.received(2);
    if (!one) throw new Error('nothing came');
    expect(one.headers['webhook-signature']).toMatch(/^v1,\S+$/);
    verify(one, second, test.clock.now());
    expect(() => verify(one, first, test.clock.now())).toThrow();
    test.advance(MINUTE);
    const stored = query.selectFrom('webhook_endpoints').select('previous_secret_encrypted').where('id', '=', id);
    const { store } = test.core.platform;
    expect(store.transact((tx) => tx.get(stored))?.previous_secret_encrypted).toBeNull();
  });
});
