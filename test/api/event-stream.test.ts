import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { MIB } from '../../shared/bytes.js';
import { OPERATORS } from '../../control-plane/domain/event.js';
import { MOST_OF_CREDENTIAL, MOST_OF_STREAM } from '../../control-plane/http/events/event-streams.js';
import { recordEvent } from '../../control-plane/services/events/record.js';
import { query, sql, statement } from '../../control-plane/store/sql.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import { World } from '../contract/world.js';
import type { Renter, TestControlPlane } from '../harness/control-plane.js';
import { EventReader, amountsOf, recordCredits } from '../harness/event-reader.js';

let world: World;
let test: TestControlPlane;
const readers: EventReader[] = [];
beforeAll(async () => {
  world = await World.make();
  test = world.test;
});
afterEach(() => {
  for (const reader of readers.splice(0)) reader.kill();
});
afterAll(() => world.stop());

const url = (path = '/v1/events') => `${test.url}${path}`;

async function open(token: string | undefined, path?: string, headers?: Record<string, string>): Promise<EventReader> {
  const reader = await EventReader.open(url(path), token, headers);
  readers.push(reader);
  return reader;
}

const tokenOf = ({ api }: Renter) => api.token;
const paid = { amount_micro: 1, balance_micro: 0, payment_id: 'p' };
const recordPaid = (stream: string) =>
  test.core.platform.store.transact((tx) => recordEvent(tx, stream, 'billing.paid', 'orgs/x', paid));

/** Moves time in steps of a comment, and lets what is due be sent. */
async function wait(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 20_000) {
    test.clock.advance(Math.min(20_000, ms - passed));
    for (let turn = 0; turn < 10; turn++) await nextTurn();
  }
}

describe('a stream of events', () => {
  it('is counted while it is open', async () => {
    const open = async () => {
      const text = await (await fetch(`${test.url}/metrics`)).text();
      return Number(/^gpurent_event_streams (\d+)$/m.exec(text)?.[1]);
    };
    const before = await open();
    const reader = await EventReader.open(url(), tokenOf(await test.renter(0)));
    expect(await open()).toBe(before + 1);
    reader.kill();
    await eventually('the end of the stream', async () => (await open()) === before);
  });

  it('sends what is new from now on, each as one block', async () => {
    const renter = await test.renter(0);
    recordCredits(test, renter.organizationId, 3);
    const reader = await open(tokenOf(renter));
    expect(reader.headers).toMatchObject({
      'content-type': expect.stringMatching(/^text\/event-stream/) as string,
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'x-request-id': expect.any(String) as string,
    });
    expect(reader.retryMs).toBe(3_000);
    recordCredits(test, renter.organizationId, 2, 4);
    const [event] = await reader.has(2);
    expect(amountsOf(reader.events)).toEqual([4, 5]);
    expect(event?.event).toBe('billing.credited');
    expect(event?.data).toMatchObject({ specversion: '1.0', id: event?.id, type: 'billing.credited' });
    const page = await renter.api.get<{ items: object[]; last_id: string }>('/v1/events?limit=2');
    expect([...page.items].reverse()).toEqual(reader.events.map(({ data }) => data));
    expect(reader.lastId).toBe(page.last_id);
  });

  it('is for who asks for it, and begins after the id that the client names', async () => {
    const renter = await test.renter(0);
    const begun = await open(tokenOf(renter));
    const start = begun.lastId ?? '';
    recordCredits(test, renter.organizationId, 500);
    const all = await open(tokenOf(renter), `/v1/events?after=${start}`);
    await all.has(500);
    expect(amountsOf(all.events)).toEqual(Array.from({ length: 500 }, (_, index) => index + 1));
    await begun.has(500);
    expect(begun.ids).toEqual(all.ids);
    // The header wins: a client that reconnects sends the same address again.
    const rest = await open(tokenOf(renter), `/v1/events?after=${start}`, { 'Last-Event-ID': all.ids[496] ?? '' });
    await rest.has(3);
    expect(amountsOf(rest.events)).toEqual([498, 499, 500]);
    const none = await open(tokenOf(renter), `/v1/events?after=${all.ids[498]}`, { 'Last-Event-ID': '' });
    await none.has(1);
    expect(amountsOf(none.events)).toEqual([500]);
    for (const accept of ['*/*', 'application/json', 'text/event-stream;q=0', 'text/*']) {
      const answer = await renter.api.request('GET', '/v1/events', undefined, { Accept: accept });
      expect(answer.headers.get('content-type'), accept).toMatch(/^application\/json/);
    }
    await open(tokenOf(renter), '/v1/events', { Accept: 'application/json, Text/Event-Stream; q=0.5' });
  });

  it('is filtered, and tells with a comment how far it has come', async () => {
    const renter = await test.renter(0);
    const reader = await open(tokenOf(renter), '/v1/events?type=billing.paid,member.left');
    const start = reader.lastId;
    recordCredits(test, renter.organizationId, 5_000);
    recordPaid(renter.organizationId);
    await reader.has(1);
    expect(reader.events.map(({ event }) => event)).toEqual(['billing.paid']);
    expect(reader.lastId).toBe(reader.ids[0]);
    recordCredits(test, renter.organizationId, 10);
    const { last_id } = await renter.api.get<{ last_id: string }>('/v1/events?limit=1');
    const passing = { clock: test.clock, stepMs: 20_000, parties: [() => test.roundTrip()] };
    await advanceUntil('the comment', passing, () => reader.lastId === last_id);
    expect(start).not.toBe(last_id);
    expect(new Set(reader.comments)).toEqual(new Set(['']));
    expect(reader.events).toHaveLength(1);
    expect(await EventReader.refused(url('/v1/events?type=x'), tokenOf(renter))).toMatchObject({
      status: 422,
      code: 'VALIDATION_FAILED',
    });
  });

  it('comments every 20 seconds, which prolongs no session', async () => {
    const renter = await test.renter(0);
    const ends = () => {
      const session = query.selectFrom('sessions').select('expires_at').where('user_id', '=', renter.userId);
      return test.core.platform.store.transact((tx) => tx.get(session)?.expires_at);
    };
    const reader = await open(tokenOf(renter));
    const before = ends();
    for (let count = 1; count <= 3; count++) {
      test.clock.advance(19_999);
      await nextTurn();
      expect(reader.comments).toHaveLength(count - 1);
      test.clock.advance(1);
      await eventually('a comment', () => reader.comments.length === count);
    }
    await wait(2 * 3_600_000);
    recordCredits(test, renter.organizationId, 1);
    await reader.has(1);
    expect(ends()).toBe(before);
  });

  it('of operators is theirs', async () => {
    const renter = await test.renter(0);
    const reader = await open(test.operator.token, '/v1/operator/events');
    expect(reader.lastId).toBe('0.0');
    const data = { machine_id: 'm', machine_name: 'm' };
    test.core.platform.store.transact((tx) => recordEvent(tx, OPERATORS, 'machine.back', 'machines/m', data));
    expect(await reader.has(1)).toMatchObject([{ event: 'machine.back', data: { source: '/v1/operator', data } }]);
    expect(await EventReader.refused(url('/v1/operator/events'), tokenOf(renter))).toMatchObject({ status: 404 });
    expect(await EventReader.refused(url('/v1/operator/events'), undefined)).toMatchObject({ status: 401 });
  });

  it('shows nothing of other organizations', async () => {
    const [one, other] = [await test.renter(0), await test.renter(0)];
    const [mine, theirs] = [await open(tokenOf(one)), await open(tokenOf(other))];
    recordCredits(test, one.organizationId, 5);
    recordCredits(test, other.organizationId, 5, 100);
    await mine.has(5);
    await theirs.has(5);
    expect(amountsOf(mine.events)).toEqual([1, 2, 3, 4, 5]);
    expect(amountsOf(theirs.events)).toEqual([100, 101, 102, 103, 104]);
    const refused = await EventReader.refused(url(), tokenOf(one), { 'X-Org-Id': other.organizationId });
    expect(refused).toMatchObject({ status: 403, code: 'ORG_MISMATCH' });
  });

  it('that cannot begin without a gap is refused, before it begins', async () => {
    const renter = await test.renter(0);
    recordCredits(test, renter.organizationId, 2);
    for (const id of ['7.1', 'x', '1.999999'])
      expect(await EventReader.refused(url(), tokenOf(renter), { 'Last-Event-ID': id }), id).toMatchObject({
        status: 410,
        code: 'EVENTS_EXPIRED',
        oldest_id: expect.stringMatching(/^\d+\.1$/) as string,
      });
  });

  it('is not opened by HEAD', async () => {
    const renter = await test.renter(0);
    const headers = { Accept: 'text/event-stream', Authorization: `Bearer ${tokenOf(renter)}` };
    for (let count = 0; count < 2 * MOST_OF_CREDENTIAL; count++) {
      const answer = await fetch(url(), { method: 'HEAD', headers });
      expect(answer.status).toBe(200);
      expect(answer.headers.get('content-type')).toMatch(/^text\/event-stream/);
      expect(await answer.text()).toBe('');
    }
    await open(tokenOf(renter));
    const expired = await fetch(url(), { method: 'HEAD', headers: { ...headers, 'Last-Event-ID': '7.1' } });
    expect(expired.status).toBe(410);
  });
});

describe('streams are bounded', () => {
  it('to ten of a credential; one more is refused until another ends', async () => {
    const key = await world.key();
    const own = await Promise.all(Array.from({ length: MOST_OF_CREDENTIAL }, () => open(key.secret)));
    const limit = { status: 409, code: 'STREAM_LIMIT_REACHED', limit: MOST_OF_CREDENTIAL };
    expect(await EventReader.refused(url(), key.secret)).toMatchObject(limit);
    // Another credential of the same user is not affected, and neither are pages.
    await open((await world.key()).secret);
    await key.api.get('/v1/events');
    own[0]?.kill();
    await eventually('room for another', async () => {
      try {
        return await open(key.secret);
      } catch {
        return false;
      }
    });
    expect(await EventReader.refused(url(), key.secret)).toMatchObject(limit);
  });

  it('to ten of a user, in all sessions together', async () => {
    const renter = await test.renter(0);
    const credential = { email: renter.email, password: 'a renter password' };
    const { token } = await test.api.post<{ token: string }>('/v1/auth/sign-in', credential);
    for (let count = 0; count < MOST_OF_CREDENTIAL; count++) await open(count % 2 ? token : tokenOf(renter));
    expect(await EventReader.refused(url(), token)).toMatchObject({ status: 409 });
  });

  it('to a hundred of an organization', async () => {
    const stranger = await test.renter(0);
    const keys = await Promise.all(
      Array.from({ length: MOST_OF_STREAM / MOST_OF_CREDENTIAL }, () =>
        stranger.api.post<{ secret: string }>('/v1/api-keys', { name: 'k' }),
      ),
    );
    for (const { secret } of keys) await Promise.all(Array.from({ length: MOST_OF_CREDENTIAL }, () => open(secret)));
    expect(await EventReader.refused(url(), tokenOf(stranger))).toMatchObject({ status: 409, limit: MOST_OF_STREAM });
    recordCredits(test, stranger.organizationId, 3);
    for (const reader of readers.slice(-100)) expect(amountsOf(await reader.has(3))).toEqual([1, 2, 3]);
  });
});

describe('a client that does not read', () => {
  /** Sends a request for a stream and reads nothing of the answer. */
  async function deaf(token: string | undefined, after: string): Promise<Socket> {
    const { hostname, port } = new URL(test.url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    const head = [`GET /v1/events?after=${after} HTTP/1.1`, 'Host: x', 'Accept: text/event-stream'];
    socket.write(`${[...head, `Authorization: Bearer ${token}`].join('\r\n')}\r\n\r\n`);
    socket.on('error', () => undefined);
    return socket;
  }

  /** Adds events of a kilobyte each. */
  function fill(stream: string, count: number): void {
    const data = sql`json_object('amount_micro', value, 'balance_micro', 0, 'reason', printf('%.*c', 1000, 'x'))`;
    test.core.platform.store.transact((tx) =>
      tx.run(
        statement(sql`
          WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < ${count})
          INSERT INTO events (stream, number, epoch, at, type, subject, data)
          SELECT ${stream}, value + (SELECT max(number) FROM events WHERE stream = ${stream}), 1, 0, 'billing.credited', 'x', ${data} FROM n`),
      ),
    );
  }

  it('costs bounded memory, and has its connection ended after a minute', async () => {
    const renter = await test.renter(0);
    recordCredits(test, renter.organizationId, 1);
    const { last_id: start } = await renter.api.get<{ last_id: string }>('/v1/events?limit=1');
    fill(renter.organizationId, 30_000);
    const before = process.memoryUsage().arrayBuffers;
    const socket = await deaf(tokenOf(renter), start);
    let most = 0;
    for (let turn = 0; turn < 3_000; turn++) {
      await nextTurn();
      most = Math.max(most, process.memoryUsage().arrayBuffers - before);
    }
    expect(most).toBeLessThan(4 * MIB);
    // Requests are answered meanwhile.
    await renter.api.get('/v1/events?limit=1');
    const others = await Promise.all(Array.from({ length: MOST_OF_CREDENTIAL - 1 }, () => open(tokenOf(renter))));
    expect(await EventReader.refused(url(), tokenOf(renter))).toMatchObject({ status: 409 });
    const closed = once(socket, 'close');
    await wait(60_000);
    expect(await EventReader.refused(url(), tokenOf(renter))).toMatchObject({ status: 409 });
    await wait(5_000);
    // Its connection is gone, although it has not read that.
    await open(tokenOf(renter));
    for (const other of others) other.kill();
    let received = 0;
    socket.on('data', (part: Buffer) => (received += part.length));
    await closed;
    expect(received).toBeGreaterThan(100_000);
    expect(received).toBeLessThan(20 * MIB);
    const again = await open(tokenOf(renter), `/v1/events?after=${start}`);
    await again.has(30_000);
    expect(amountsOf(again.events)).toEqual(Array.from({ length: 30_000 }, (_, index) => index + 1));
  });

  it('is told when events were deleted that it had not reached', async () => {
    const renter = await test.renter(0);
    recordCredits(test, renter.organizationId, 1);
    const { last_id: start } = await renter.api.get<{ last_id: string }>('/v1/events?limit=1');
    fill(renter.organizationId, 30_000);
    const socket = await deaf(tokenOf(renter), start);
    for (let turn = 0; turn < 1_000; turn++) await nextTurn();
    test.core.platform.store.transact((tx) => {
      const { number } = tx.get(
        query
          .selectFrom('events')
          .select('number')
          .where('stream', '=', renter.organizationId)
          .orderBy('number', 'desc')
          .limit(1),
      ) ?? { number: 0 };
      tx.run(query.deleteFrom('events').where('stream', '=', renter.organizationId).where('number', '<', number));
      tx.run(query.insertInto('event_streams').values({ stream: renter.organizationId, expired_to: number - 1 }));
    });
    let text = '';
    socket.setEncoding('utf8');
    socket.on('data', (part: string) => (text = (text + part).slice(-10_000)));
    await once(socket, 'close');
    const [, data = ''] = /\nevent: expired\ndata: (.*)\n\n/.exec(text) ?? [];
    const { last_id } = await renter.api.get<{ last_id: string }>('/v1/events?limit=1');
    expect(JSON.parse(data)).toMatchObject({ code: 'EVENTS_EXPIRED', oldest_id: last_id });
  });
});

describe('a stream ends with what lets its client read it', () => {
  const OVER = 'this credential may not read these events any more';

  /** What is recorded after the end is not sent. */
  async function endsBy(reader: EventReader, act: () => unknown, stream: string): Promise<void> {
    await act();
    recordCredits(test, stream, 1);
    expect(await reader.ended()).toBe(OVER);
    expect(reader.events.filter(({ event }) => event === 'billing.credited')).toEqual([]);
  }

  it('an API key that is revoked', async () => {
    const [key, other] = [await world.key(), await world.key()];
    const [reader, stays] = [await open(key.secret), await open(other.secret)];
    const { organizationId } = world.admin;
    await endsBy(reader, () => world.admin.api.delete(`/v1/api-keys/${key.key.id}`), organizationId);
    await stays.has(1);
    expect(stays.isOver).toBe(false);
  });

  it('a session that is signed out', async () => {
    const renter = await test.renter(0);
    const reader = await open(tokenOf(renter));
    await endsBy(reader, () => renter.api.post('/v1/auth/sign-out'), renter.organizationId);
  });

  it('a session that expires, at the next comment', async () => {
    const renter = await test.renter(0);
    const reader = await open(tokenOf(renter));
    const ends = test.clock.now() + 10_000;
    test.core.platform.store.transact((tx) =>
      tx.run(query.updateTable('sessions').set({ expires_at: ends }).where('user_id', '=', renter.userId)),
    );
    await nextTurn();
    test.clock.advance(10_000);
    await nextTurn();
    expect(reader.isOver).toBe(false);
    test.clock.advance(10_000);
    expect(await reader.ended()).toBe(OVER);
  });

  it('a session that has expired, before the next event', async () => {
    const renter = await test.renter(0);
    const reader = await open(tokenOf(renter));
    const ends = test.clock.now() + 10_000;
    test.core.platform.store.transact((tx) =>
      tx.run(query.updateTable('sessions').set({ expires_at: ends }).where('user_id', '=', renter.userId)),
    );
    await wait(1);
    await endsBy(reader, () => test.clock.advance(10_000), renter.organizationId);
  });

  it('a membership, also where the member has another organization and names none', async () => {
    const member = await world.join();
    test.dissolve(member);
    const { organizationId } = world.admin;
    const reader = await open(tokenOf(member));
    const named = await open(tokenOf(member), '/v1/events', { 'X-Org-Id': organizationId });
    await member.api.post('/v1/orgs', { name: 'another' });
    const leave = () => world.admin.api.delete(`/v1/orgs/current/members/${member.userId}`);
    await endsBy(reader, leave, organizationId);
    expect(await named.ended()).toBe(OVER);
  });

  it('a personal key whose creator leaves; a team key goes on', async () => {
    const member = await world.join('admin');
    const { organizationId } = world.admin;
    const [personal, team] = [await world.key('personal', member), await world.key('team', member)];
    const [reader, stays] = [await open(personal.secret), await open(team.secret)];
    await endsBy(reader, () => world.leave(member), organizationId);
    await stays.has(1);
    expect(stays.isOver).toBe(false);
  });

  it('the right of an operator', async () => {
    const renter = await test.renter(0);
    test.makeOperator(renter.userId);
    const reader = await open(tokenOf(renter), '/v1/operator/events');
    const own = await open(tokenOf(renter));
    test.core.platform.store.transact((tx) =>
      tx.run(query.updateTable('users').set({ is_operator: 0 }).where('id', '=', renter.userId)),
    );
    expect(await reader.ended()).toBe(OVER);
    recordCredits(test, renter.organizationId, 1);
    await own.has(1);
    expect(own.isOver).toBe(false);
  });

  it('a user that an operator removes', async () => {
    const renter = await test.renter(0);
    const reader = await open(tokenOf(renter));
    await endsBy(reader, () => test.operator.delete(`/v1/operator/users/${renter.userId}`), renter.organizationId);
  });

  it('the control plane that stops, which says to come back', async () => {
    const renter = await test.renter(0);
    const [reader, other] = [await open(tokenOf(renter)), await open(tokenOf(renter))];
    recordCredits(test, renter.organizationId, 2);
    await reader.has(2);
    await test.restart();
    expect(await reader.ended()).toMatch(/stopping; connect again/);
    expect(await other.ended()).toMatch(/stopping; connect again/);
    recordCredits(test, renter.organizationId, 2, 3);
    const next = await open(tokenOf(renter), '/v1/events', { 'Last-Event-ID': reader.ids[0] ?? '' });
    await next.has(3);
    expect(amountsOf(next.events)).toEqual([2, 3, 4]);
    expect(test.logged(50)).toEqual([]);
  });
});
