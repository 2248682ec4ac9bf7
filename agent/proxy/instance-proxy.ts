import { createProxyServer } from 'httpxy';
import { createServer, type IncomingMessage, ServerResponse, type Server } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Clock } from '../../shared/clock.js';
import { ConnectionGate } from '../../shared/connection-gate.js';
import type { KeyAndCertificate } from '../../shared/network/server-identity.js';
import { HOUR_MS } from '../../shared/time.js';
import { confine } from './answer-headers.js';
import { authorize, locationWithoutToken, withoutOwnCookies } from './authorize.js';
import type { GuardedPort } from './state.js';

interface Open {
  port: GuardedPort;
  server: Server | TlsServer;
  /** Counts and bounds all connections, including those in a TLS handshake, and WebSockets. */
  gate: ConnectionGate;
}

/** Limits of one port: visitors without a valid access token cannot keep out visitors with one. */
const LIMITS = {
  unproven: 128,
  unprovenOfOneAddress: 96,
  waiting: 512,
  waitingOfOneAddress: 384,
  proven: 1e3,
};
const HEADERS_MS = 20_000;
/** A model can compute for long before it answers. */
const ANSWER_MS = HOUR_MS;
const DENIED =
  'This needs the instance’s access token: open the link that the instance shows, or add ?token=... to this one.';
const TOO_LARGE =
  'Your browser sends more than this accepts, probably cookies of other instances at this host name: delete the cookies of this name.';

/**
 * Serves the guarded ports of one instance: checks the access token, then passes everything on. Uses TLS if it has an
 * identity.
 */
export class InstanceProxy {
  private readonly open = new Map<number, Open>();
  private readonly proxy = createProxyServer({ xfwd: true, agent: false, proxyTimeout: ANSWER_MS });
  /** Where the visitors go next whose address has the access token. */
  private readonly next = new WeakMap<IncomingMessage, string>();

  constructor(private readonly clock: Clock) {
    // The status of the workload's answer is copied to the visitor, so it must be valid for Node.
    this.proxy.on('proxyRes', (answered, request) => {
      const { statusCode = 0, statusMessage = '' } = answered;
      if (statusCode < 200 || statusCode > 999) answered.statusCode = 502;
      if (!/^[\x20-\x7e]*$/.test(statusMessage)) answered.statusMessage = '';
      confine(answered.headers);
      const location = this.next.get(request);
      if (location !== undefined) redirect(answered, location);
    });
    // The proxy passes on what these listeners leave, because it adds its own after this event.
    this.proxy.on('proxyReqWs', (asked) => {
      asked.on('upgrade', (answered) => confine(answered.headers));
      asked.on('response', (answered) => confine(answered.headers));
    });
    this.proxy.on('error', (_, __, to) => {
      if (to instanceof ServerResponse && !to.headersSent)
        answer(to, 502, 'The workload does not answer at this port yet; try again later.');
      else to?.destroy();
    });
  }

  /** How many connections are open. */
  get connections(): number {
    return [...this.open.values()].reduce((sum, { gate }) => sum + gate.connections, 0);
  }

  /** Serves exactly these ports from now on, and ends the connections of all others. */
  configure(ports: readonly GuardedPort[], identity: KeyAndCertificate | null): void {
    const wanted = new Map(ports.map((port) => [port.hostPort, port]));
    for (const [hostPort, { server, port }] of this.open) {
      const next = wanted.get(hostPort);
      const speaksTls = 'setSecureContext' in server;
      // Visitors who were admitted with another token, or to another workload, must not stay connected.
      if (!next || speaksTls !== (identity !== null) || !isSameDoor(port, next)) this.close(hostPort);
      else if (speaksTls && identity) server.setSecureContext(contextOf(identity));
    }
    for (const port of ports) if (!this.open.has(port.hostPort)) this.add(port, identity);
  }

  /** Serves a connection that a visitor has opened at a port. */
  take(hostPort: number, socket: Socket): void {
    const open = this.open.get(hostPort);
    if (open) open.gate.take(socket);
    else socket.destroy();
  }

  private add(port: GuardedPort, identity: KeyAndCertificate | null): void {
    const limits = { headersTimeout: HEADERS_MS, requestTimeout: 0 };
    const server = identity
      ? createTlsServer({ ...limits, handshakeTimeout: HEADERS_MS, ...contextOf(identity) })
      : createServer(limits);
    const gate = new ConnectionGate(this.clock, (socket) => server.emit('connection', socket), LIMITS);
    const open: Open = { port, server, gate };
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      guarded(response, () => this.serve(open, request, response));
    });
    server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      guarded(socket, () => this.upgrade(open, request, socket, head));
    });
    server.on('clientError', ({ code }: NodeJS.ErrnoException, socket: Socket) => {
      if (code === 'HPE_HEADER_OVERFLOW' && socket.writable)
        refuse(socket, '431 Request Header Fields Too Large', TOO_LARGE);
      else socket.destroy();
    });
    this.open.set(port.hostPort, open);
  }

  private close(hostPort: number): void {
    const open = this.open.get(hostPort);
    this.open.delete(hostPort);
    open?.gate.destroy();
    open?.server.close();
  }

  private serve({ port, gate, server }: Open, request: IncomingMessage, response: ServerResponse): void {
    const admission = authorize(port, visitOf(request));
    if (!admission.admitted) return answer(response, 401, DENIED);
    gate.prove(peerOf(request.socket));
    if (admission.cookie !== undefined) {
      // Added last, because cookies that the workload sets would otherwise replace it.
      const cookie = `${admission.cookie}; Path=/; HttpOnly; SameSite=Lax${'setSecureContext' in server ? '; Secure' : ''}`;
      const writeHead = response.writeHead.bind(response);
      response.writeHead = ((...args: Parameters<typeof writeHead>) => {
        response.appendHeader('set-cookie', cookie);
        return writeHead(...args);
      }) as typeof writeHead;
      const location = locationWithoutToken(port, visitOf(request));
      if (location !== undefined) this.next.set(request, location);
    }
    strip(request);
    this.proxy.web(request, response, { target: targetOf(port) }).catch(() => response.destroy());
  }

  private upgrade({ port, gate }: Open, request: IncomingMessage, socket: Socket, head: Buffer): void {
    socket.on('error', () => socket.destroy());
    if (!authorize(port, visitOf(request)).admitted) {
      return refuse(socket, '401 Unauthorized');
    }
    gate.prove(peerOf(socket));
    strip(request);
    this.proxy.ws(request, socket, { target: targetOf(port) }, head).catch(() => socket.destroy());
  }
}

/** Runs `work` for a visitor; an error ends only that visitor's connection. */
function guarded(visitor: { destroy(): unknown }, work: () => void): void {
  try {
    work();
  } catch {
    visitor.destroy();
  }
}

function answer(response: ServerResponse, status: number, text: string): void {
  // A visitor who gets one of these answers has nothing more to send, so the connection is closed.
  const headers = { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store', connection: 'close' };
  response.writeHead(status, headers).end(`${text}\n`);
}

function refuse(socket: Socket, status: string, text = ''): void {
  const body = text === '' ? '' : `${text}\n`;
  const headers = `Connection: close\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}`;
  socket.end(`HTTP/1.1 ${status}\r\n${headers}\r\n\r\n${body}`, () => socket.destroy());
}

/**
 * Makes a workload's page a redirect, which keeps its cookies. The workload is asked with the token first, because some sign their
 * visitors in by it, such as JupyterLab. Other answers stay as they are: a redirect of the workload, an error, or a file.
 */
function redirect(answered: IncomingMessage, location: string): void {
  if (answered.statusCode !== 200 || !/^text\/html\b/i.test(answered.headers['content-type'] ?? '')) return;
  answered.statusCode = 302;
  answered.statusMessage = '';
  Object.assign(answered.headers, { location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' });
}

function isSameDoor(one: GuardedPort, other: GuardedPort): boolean {
  const sameTarget = one.target.host === other.target.host && one.target.port === other.target.port;
  return sameTarget && one.tokenHash === other.tokenHash;
}

function visitOf({ method = 'GET', url = '/', headers, socket }: IncomingMessage) {
  return { method, url, headers, address: socket.remoteAddress ?? '' };
}

/**
 * Removes headers that must not reach the workload: the cookies of this host's gates and of control planes; addresses of the visitor, which
 * the proxy itself sets; and an announced trailer, which makes Node throw uncaught if none can follow.
 */
function strip({ headers }: IncomingMessage): void {
  for (const name of Object.keys(headers))
    if (/^(forwarded$|x-forwarded-|x-real-ip$|trailer$)/.test(name)) Reflect.deleteProperty(headers, name);
  const left = withoutOwnCookies(headers.cookie);
  if (left === undefined) delete headers.cookie;
  else headers.cookie = left;
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress}:${remotePort}`;
}

function contextOf({ certificate, key }: KeyAndCertificate): { cert: string; key: string } {
  return { cert: certificate, key };
}

function targetOf({ target: { host, port } }: GuardedPort): string {
  return `http://${host}:${port}`;
}
