import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { CONNECTION_LIMITS, boundConnections } from '../../control-plane/http/limits/connections.js';
import { certificateFor } from '../harness/certificate.js';
import { TestControlPlane } from '../harness/control-plane.js';

const PROXY = '127.0.0.1';
const LIMITS = { ofOneNetwork: 3, inAll: 6 };
const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

describe('connections to the API', () => {
  let server: Server;
  let port: number;
  const made: Socket[] = [];
  /** The requests that are not answered yet, in the order in which they came. */
  const open: ServerResponse[] = [];

  beforeEach(async () => {
    await listen(createServer());
  });
  afterEach(async () => {
    for (const socket of made.splice(0)) socket.destroy();
    open.length = 0;
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  });

  async function listen(next: Server): Promise<void> {
    server = next;
    server.on('request', (_: IncomingMessage, response: ServerResponse) => open.push(response));
    boundConnections(server, LIMITS, (address) => address === PROXY);
    await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
    port = (server.address() as AddressInfo).port;
  }

  /** Connects from an address of this machine: each is a network of its own. */
  async function dial(localAddress: string): Promise<Socket> {
    const socket = connect({ host: '127.0.0.1', port, localAddress });
    socket.on('error', () => undefined).resume();
    made.push(socket);
    await once(socket, 'connect');
    return socket;
  }
  const dialAll = async (localAddress: string, count: number) => {
    const sockets: Socket[] = [];
    for (let index = 0; index < count; index++) sockets.push(await dial(localAddress));
    return sockets;
  };
  const isEnded = (socket?: Socket) => socket === undefined || socket.destroyed || socket.readableEnded;
  const ended = (socket?: Socket) => eventually('the end', () => isEnded(socket));
  /** Begins a request, which is not answered. */
  async function ask(socket?: Socket): Promise<void> {
    const before = open.length;
    socket?.write(REQUEST);
    await eventually('the request', () => open.length > before);
  }
  /** Answers the newest request. */
  async function answer(socket?: Socket): Promise<void> {
    const response = open.pop();
    const received = socket ? once(socket, 'data') : undefined;
    const closed = response ? once(response, 'close') : undefined;
    response?.end('done');
    await Promise.all([received, closed]);
  }

  it('of one network take the place of each other, those of others stay', async () => {
    const other = await dial('127.0.0.3');
    const [first, ...others] = await dialAll('127.0.0.2', LIMITS.ofOneNetwork);
    const newest = await dial('127.0.0.2');
    await ended(first);
    expect([other, ...others, newest].some(isEnded)).toBe(false);
    await ask(newest);
  });

  it('go on while they have a request; the one that has had none for longest is ended', async () => {
    const [busy, quiet, late] = await dialAll('127.0.0.2', LIMITS.ofOneNetwork);
    await ask(busy);
    await ask(late);
    await answer(late);
    const newest = await dial('127.0.0.2');
    await ended(quiet);
    expect([busy, late, newest].some(isEnded)).toBe(false);
    await answer(busy);
    await dial('127.0.0.2');
    await ended(late);
    expect([busy, newest].some(isEnded)).toBe(false);
  });

  it('are ended where each other one of the network has a request', async () => {
    const all = await dialAll('127.0.0.2', LIMITS.ofOneNetwork);
    for (const socket of all) await ask(socket);
    await ended(await dial('127.0.0.2'));
    expect(all.some(isEnded)).toBe(false);
    // Once one of them has gone, there is room.
    all[0]?.destroy();
    await eventually('room', async () => {
      const next = await dial('127.0.0.2');
      const before = open.length;
      next.write(REQUEST);
      await eventually('its request or its end', () => open.length > before || isEnded(next));
      return !isEnded(next);
    });
  });

  it('of a proxy on this machine are those of everybody: they are bounded in all alone', async () => {
    const all = await dialAll(PROXY, LIMITS.inAll);
    expect(all.some(isEnded)).toBe(false);
    const newest = await dial(PROXY);
    await ended(all[0]);
    expect([...all.slice(1), newest].some(isEnded)).toBe(false);
  });

  it('in all are so many; one too many ends one of the network with the most', async () => {
    const crowd = await dialAll('127.0.0.2', 3);
    const few = [await dial('127.0.0.3'), await dial('127.0.0.4'), await dial('127.0.0.5')];
    const newest = await dial('127.0.0.6');
    await ended(crowd[0]);
    expect([...crowd.slice(1), ...few, newest].some(isEnded)).toBe(false);
    await ask(newest);
  });

  it('in all, end one without a request also where a network has only requests', async () => {
    const busy = await dialAll('127.0.0.2', 3);
    for (const socket of busy) await ask(socket);
    const idle = [await dial('127.0.0.3'), await dial('127.0.0.4'), await dial('127.0.0.5')];
    const newest = await dial('127.0.0.6');
    await ended(idle[0]);
    expect([...busy, ...idle.slice(1), newest].some(isEnded)).toBe(false);
  });

  it('are bounded before a handshake of TLS has ended, too', async () => {
    server.close();
    await once(server, 'close');
    const { certificate: cert, key } = await certificateFor('gpurent.example.com');
    await listen(createTlsServer({ cert, key }));
    const [first, ...others] = await dialAll('127.0.0.2', LIMITS.ofOneNetwork);
    const newest = await dial('127.0.0.2');
    await ended(first);
    expect([...others, newest].some(isEnded)).toBe(false);
  });
});

it('a control plane keeps all connections of a proxy on this machine', async () => {
  const test = await TestControlPlane.start();
  const { hostname, port } = new URL(test.url);
  const ofProxy = Array.from({ length: CONNECTION_LIMITS.ofOneNetwork + 50 }, () =>
    connect({ host: hostname, port: Number(port) }),
  );
  for (const socket of ofProxy) socket.on('error', () => undefined).resume();
  try {
    await Promise.all(ofProxy.map((socket) => once(socket, 'connect')));
    await test.operator.get('/v1/operator/machines');
    expect(ofProxy.some(({ destroyed, readableEnded }) => destroyed || readableEnded)).toBe(false);
  } finally {
    for (const socket of ofProxy) socket.destroy();
    await test.stop();
  }
});
