import { EventEmitter } from 'node:events';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { EventStreams } from '../../control-plane/http/event-streams.js';
import { TestControlPlane } from '../harness/control-plane.js';

const ALL = { types: null, instanceId: null, machineId: null };

let test: TestControlPlane;
const connections: EventEmitter[] = [];
beforeAll(async () => {
  test = await TestControlPlane.start();
});
afterEach(() => {
  for (const connection of connections.splice(0)) connection.emit('close');
});
afterAll(() => test.stop());

const sessionOf = (userId: string, organizationId: string) => ({ kind: 'session', userId, organizationId });
const keyOf = (creatorId: string, keyId: string, organizationId: string) => {
  return { kind: 'api_key', creatorId, keyId, organizationId };
};

/** Opens a stream as a request of this caller would. Returns its connection. */
function open(streams: EventStreams, caller: { kind: string; organizationId: string }): EventEmitter {
  const raw = new EventEmitter();
  const request = { caller, headers: {}, routeOptions: { config: {} } } as unknown as FastifyRequest;
  const reading = { stream: caller.organizationId, filter: ALL, from: { number: 0, id: '0.0' } };
  streams.start(request, { raw } as unknown as FastifyReply, reading).on('error', () => undefined);
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
    const streams = new EventStreams(test.core.platform, { ofOneUser: 100, inAll: 2 });
    const first = open(streams, sessionOf('a', 'one'));
    open(streams, sessionOf('b', 'two'));
    expect(refusalOf(() => open(streams, sessionOf('c', 'three')))).toMatchObject({ code: 'UNAVAILABLE' });
    first.emit('close');
    open(streams, sessionOf('c', 'three'));
    expect(streams.count).toBe(2);
  });
});
