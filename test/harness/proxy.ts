import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { fileURLToPath } from 'node:url';
import { ProxyClient, proxyChild } from '../../agent/proxy/client.js';
import { silentLogger } from '../../shared/logger.js';
import type { ServerIdentity } from '../../shared/network/server-identity.js';
import { ManualClock } from './manual-clock.js';

/** The access proxy as a program. */
export const PROXY = fileURLToPath(new URL('../../dist/agent/proxy/main.js', import.meta.url));

const HOST = '127.0.0.1';

/** An access proxy in processes of its own, on loopback, as an agent without systemd has it. */
export function startProxy(identity?: ServerIdentity): ProxyClient {
  const proxy = new ProxyClient(proxyChild(PROXY), HOST, new ManualClock(), silentLogger, identity);
  proxy.start();
  proxy.complete();
  return proxy;
}

/** Listens on a free port of loopback, and returns it. */
export function listen(server: Server): Promise<number> {
  return new Promise((resolve) => server.listen(0, HOST, () => resolve((server.address() as AddressInfo).port)));
}

/** Returns a port of loopback at which nothing listens. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Starts a workload that gives this to whoever speaks to it, and hangs up. Returns its port. */
export function answering(words: string | (() => string)): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.end(typeof words === 'string' ? words : words()));
  });
  return listen(server);
}

/** Returns what is heard on these bytes, until the connection ends or says nothing for a moment. */
export function say(port: number, bytes: string, silenceMs = 100): Promise<string> {
  return new Promise((resolve) => {
    let heard = '';
    const socket = connect({ host: HOST, port, timeout: silenceMs }, () => socket.write(bytes));
    socket.on('data', (data) => (heard += data.toString('latin1')));
    socket.on('timeout', () => socket.destroy());
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(heard));
  });
}
