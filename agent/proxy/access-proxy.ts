import { createProxyServer } from 'httpxy';
import { createServer, type IncomingMessage, ServerResponse, type Server } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { messageOf } from '../../shared/coded-error.js';
import type { Logger } from '../../shared/logger.js';
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
  /** All that are connected: a server does not know those that shake hands yet, nor WebSockets. */
  sockets: Set<Socket>;
}

const MAX_CONNECTIONS = 1_000;
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
    private readonly logger: Logger,
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
    const open: Open = { port, server, sockets: new Set() };
    server.maxConnections = MAX_CONNECTIONS;
    server.on('connection', (socket: Socket) => {
      open.sockets.add(socket);
      socket.once('close', () => open.sockets.delete(socket));
    });
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      guarded(response, () => this.serve(open.port, request, response));
    });
    server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      guarded(socket, () => this.upgrade(open.port, request, socket, head));
    });
    server.on('clientError', (_, socket) => socket.destroy());
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host: this.bindAddress, port: port.hostPort }, () => resolve());
    });
    server.on('error', (error) => this.logger.warn({ hostPort: port.hostPort }, messageOf(error)));
    this.open.set(port.hostPort, open);
    if (this.identity && 'setSecureContext' in server) server.setSecureContext(contextOf(this.identity.current));
  }

  private close(hostPort: number): void {
    const open = this.open.get(hostPort);
    this.open.delete(hostPort);
    open?.server.close();
    for (const socket of open?.sockets ?? []) socket.destroy();
  }

  private serve(port: GuardedPort, request: IncomingMessage, response: ServerResponse): void {
    const admission = admit(port, visitOf(request));
    if (!admission.admitted) return answer(response, 401, DENIED);
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

  private upgrade(port: GuardedPort, request: IncomingMessage, socket: Socket, head: Buffer): void {
    socket.on('error', () => socket.destroy());
    if (!admit(port, visitOf(request)).admitted) {
      const refusal = 'HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';
      return void socket.end(refusal, () => socket.destroy());
    }
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

/** What opens this host's doors is none of the workload's business. */
function strip({ headers }: IncomingMessage): void {
  const left = withoutDoorCookies(headers.cookie);
  if (left === undefined) delete headers.cookie;
  else headers.cookie = left;
}

function contextOf({ certificate, key }: KeyAndCertificate): { cert: string; key: string } {
  return { cert: certificate, key };
}

function targetOf({ target: { host, port } }: GuardedPort): string {
  return `http://${host}:${port}`;
}
