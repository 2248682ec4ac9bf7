import { createProxyServer } from 'httpxy';
import { createServer, type IncomingMessage, ServerResponse, type Server } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Clock } from '../../shared/clock.js';
import { ConnectionGate } from '../../shared/connection-gate.js';
import type { KeyAndCertificate, ServerIdentity } from '../../shared/server-identity.js';
import { admit, withoutDoorCookies, type Door } from './admission.js';

/** A guarded port, and what stands behind it. */
export interface GuardedPort extends Door {
  /** Of the workload, as this host reaches it. */
  target: { host: string; port: number };
}

interface Open {
  port: GuardedPort;
  server: Server | TlsServer;
  /** All that are connected, also those that shake hands yet, and WebSockets. */
  gate: ConnectionGate;
}

/** Of one port: whoever has not shown its access token keeps out nobody who has. */
const LIMITS = {
  ...{ unproven: 128, unprovenOfOneAddress: 96 },
  ...{ waiting: 512, waitingOfOneAddress: 384 },
  proven: 1_000,
};
const HEADERS_MS = 20_000;
/** Models may think for long before they say a word. */
const ANSWER_MS = 3_600_000;
const DENIED =
  'This needs the instance’s access token: open the link that the instance shows, or add ?token=... to this one.';

/**
 * Stands before the ports of workloads that do not guard themselves: asks for the access token, then lets everything through.
 * Speaks TLS where there is an identity to show.
 */
export class AccessProxy {
  private readonly open = new Map<number, Open>();
  private readonly proxy = createProxyServer({ xfwd: true, agent: false, proxyTimeout: ANSWER_MS });

  constructor(
    private readonly bindAddress: string,
    private readonly clock: Clock,
    private readonly identity?: ServerIdentity,
  ) {
    identity?.follow((shown) => {
      for (const { server } of this.open.values())
        if ('setSecureContext' in server) server.setSecureContext(contextOf(shown));
    });
    // What a workload answers is copied to the visitor: it must be something that can be said.
    this.proxy.on('proxyRes', (answered) => {
      const { statusCode = 0, statusMessage = '' } = answered;
      if (statusCode < 200 || statusCode > 999) answered.statusCode = 502;
      if (!/^[\x20-\x7e]*$/.test(statusMessage)) answered.statusMessage = '';
      // The same on the way back: see strip.
      delete answered.headers.trailer;
    });
    this.proxy.on('error', (_, __, to) => {
      if (to instanceof ServerResponse && !to.headersSent) answer(to, 502, 'Nothing answers there yet.');
      else to?.destroy();
    });
  }

  /** What links to these ports begin with. */
  get scheme(): 'http' | 'https' {
    return this.identity ? 'https' : 'http';
  }

  /** Exactly these ports of an owner are open from now on. Throws when one cannot be listened on. */
  async set(ports: readonly GuardedPort[], before: readonly GuardedPort[]): Promise<void> {
    const wanted = new Set(ports.map(({ hostPort }) => hostPort));
    for (const { hostPort } of before) if (!wanted.has(hostPort)) this.close(hostPort);
    for (const port of ports) await this.listen(port);
  }

  stop(): void {
    for (const hostPort of [...this.open.keys()]) this.close(hostPort);
  }

  private async listen(port: GuardedPort): Promise<void> {
    const known = this.open.get(port.hostPort);
    if (known) {
      known.port = port;
      return;
    }
    const limits = { headersTimeout: HEADERS_MS, requestTimeout: 0 };
    const server = this.identity
      ? createTlsServer({ ...limits, handshakeTimeout: HEADERS_MS, ...contextOf(this.identity.current) })
      : createServer(limits);
    const gate = new ConnectionGate(this.clock, (socket) => server.emit('connection', socket), LIMITS);
    const open: Open = { port, server, gate };
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      guarded(response, () => this.serve(open, request, response));
    });
    server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      guarded(socket, () => this.upgrade(open, request, socket, head));
    });
    server.on('clientError', (_, socket) => socket.destroy());
    await gate.listen(this.bindAddress, port.hostPort);
    this.open.set(port.hostPort, open);
    if (this.identity && 'setSecureContext' in server) server.setSecureContext(contextOf(this.identity.current));
  }

  private close(hostPort: number): void {
    const open = this.open.get(hostPort);
    this.open.delete(hostPort);
    open?.gate.destroy();
    open?.server.close();
  }

  private serve({ port, gate }: Open, request: IncomingMessage, response: ServerResponse): void {
    const admission = admit(port, visitOf(request));
    if (!admission.admitted) return answer(response, 401, DENIED);
    gate.prove(peerOf(request.socket));
    if (admission.cookie !== undefined) {
      // Kept apart from what the workload sets, which would otherwise replace it.
      const cookie = `${admission.cookie}; Path=/; HttpOnly; SameSite=Lax${this.identity ? '; Secure' : ''}`;
      const writeHead = response.writeHead.bind(response);
      response.writeHead = ((...args: Parameters<typeof writeHead>) => {
        response.appendHeader('set-cookie', cookie);
        return writeHead(...args);
      }) as typeof writeHead;
    }
    strip(request);
    this.proxy.web(request, response, { target: targetOf(port) }).catch(() => response.destroy());
  }

  private upgrade({ port, gate }: Open, request: IncomingMessage, socket: Socket, head: Buffer): void {
    socket.on('error', () => socket.destroy());
    if (!admit(port, visitOf(request)).admitted) {
      const refusal = 'HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';
      return void socket.end(refusal, () => socket.destroy());
    }
    gate.prove(peerOf(socket));
    strip(request);
    this.proxy.ws(request, socket, { target: targetOf(port) }, head).catch(() => socket.destroy());
  }
}

/** Whatever a stranger sends, it ends with that visit. */
function guarded(visitor: { destroy(): unknown }, work: () => void): void {
  try {
    work();
  } catch {
    visitor.destroy();
  }
}

function answer(response: ServerResponse, status: number, text: string): void {
  // Whoever has no answer to read has nothing more to send.
  const headers = { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store', connection: 'close' };
  response.writeHead(status, headers).end(`${text}\n`);
}

function visitOf({ url = '/', headers, socket }: IncomingMessage) {
  return { url, headers, address: socket.remoteAddress ?? '' };
}

/**
 * What opens this host's doors is none of the workload's business; where a visitor comes from is ours to say; and a trailer that
 * is announced where none can follow makes Node throw where nobody catches it.
 */
function strip({ headers }: IncomingMessage): void {
  for (const name of Object.keys(headers))
    if (/^(forwarded$|x-forwarded-|x-real-ip$|trailer$)/.test(name)) Reflect.deleteProperty(headers, name);
  const left = withoutDoorCookies(headers.cookie);
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
