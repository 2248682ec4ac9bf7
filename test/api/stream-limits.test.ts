import { EventEmitter } from 'node:events';
import type { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { EventStreams } from '../../control-plane/http/events/event-streams.js';
import { TestControlPlane } from '../harness/control-plane.js';

const ALL = { types: null, instanceId: null, machineId: null };

let test: TestControlPlane;
const connections: EventEmitter[] = [];
const readers: Readable[] = [];
beforeAll(async () => {
  test = await TestControlPlane.start();
});
afterEach(() => {
  for (const connection of connections.splice(0)) connection.emit('close');
  readers.length = 0;
});
afterAll(() => test.stop());

const sessionOf = (userId: string, organizationId: string) => ({ kind: 'session', userId, organizationId });
const keyOf = (creatorId: string, keyId: string, organizationId: string) => {
  return { kind: 'api_key', creatorId, keyId, organizationId };
};

/** Opens a stream as a request of this caller would. Returns its connection. */
function open(streams: EventStreams, caller: { kind: string; organizationId: string }): EventEmitter {
  const raw = Object.assign(new EventEmitter(), { destroy: () => undefined });
  const request = { caller, headers: {}, socket: {}, routeOptions: { config: {} } } as unknown as FastifyRequest;
  const reading = { stream: caller.organizationId, filter: ALL, from: { number: 0, id: '0.0' } };
  readers.push(streams.start(request, { raw } as unknown as FastifyReply, reading).on('error', () => undefined));
  connections.push(raw);
  return raw;
}

const refusalOf = (act: () => unknown): unknown => {
  try {
    act();
    return undefined;
  } catch (error) {
    return error;
  }
};

describe('streams of events are bounded', () => {
  it('of a user, over all organizations, sessions and API keys', () => {
    const streams = new EventStreams(test.core.platform, { ofOneUser: 3, inAll: 100 });
    const first = open(streams, sessionOf('user', 'one'));
    open(streams, keyOf('user', 'key', 'two'));
    open(streams, keyOf('user', 'other key', 'three'));
    const limit = { code: 'STREAM_LIMIT_REACHED', extra: { limit: 3 } };
    expect(refusalOf(() => open(streams, keyOf('user', 'third key', 'four')))).toMatchObject(limit);
    expect(refusalOf(() => open(streams, sessionOf('user', 'five')))).toMatchObject(limit);
    open(streams, sessionOf('somebody else', 'one'));
    first.emit('close');
    open(streams, sessionOf('user', 'five'));
    expect(streams.count).toBe(4);
  });

  it('in all; another one is told to try again', () => {
    const streams = new EventStreams(test.core.platform, { ofOneUser: 100, inAll: 4 });
    const first = open(streams, sessionOf('a', 'one'));
    open(streams, sessionOf('b', 'two'));
    expect(refusalOf(() => open(streams, sessionOf('c', 'three')))).toMatchObject({ code: 'UNAVAILABLE' });
    first.emit('close');
    open(streams, sessionOf('c', 'three'));
    expect(streams.count).toBe(2);
  });

  it('of all organizations that have never paid; the account with the most gives way to others', async () => {
    const streams = new EventStreams(test.core.platform, { ofOneUser: 100, inAll: 8 });
    const [many, few, payer] = await Promise.all([test.renter(0), test.renter(0), test.renter()]);
    const second = await many.api.post<{ id: string }>('/v1/orgs', { name: 'its second' });
    const [own, other] = [sessionOf(many.userId, many.organizationId), keyOf('a colleague', 'key', second.id)];
    for (const caller of [own, own, other, other]) open(streams, caller);
    expect(refusalOf(() => open(streams, other))).toMatchObject({ code: 'UNAVAILABLE' });
    open(streams, sessionOf(few.userId, few.organizationId));
    const [first, ...rest] = readers.map((reader) =>
      String(reader.read()).includes('your account more than of others'),
    );
    expect([first, rest]).toEqual([true, [false, false, false, false]]);
    connections.shift()?.emit('close');
    for (let count = 0; count < 5; count += 1) open(streams, sessionOf(payer.userId, payer.organizationId));
    expect(streams.count).toBe(9);
    expect(String(readers[1]?.read())).toContain('your account more than of others');
  });
});
