import type { IncomingHttpHeaders } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createTcpServer, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { vi } from 'vitest';
import { certificateFor } from './certificate.js';

export interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** What a message says of an event. */
export interface Message {
  specversion: string;
  id: string;
  source: string;
  type: string;
  subject: string;
  time: string;
  data: Record<string, unknown>;
}

type Answer = (response: ServerResponse, request: IncomingMessage) => void;

const NAME = 'hooks.example';

/** A renter's HTTPS server on loopback, under a name of its own and with a certificate that nobody else trusts. */
export class WebhookReceiver {
  readonly received: Received[] = [];
  /** What it answers; otherwise 204. */
  answer: Answer = (response) => void response.writeHead(204).end();

  private constructor(
    private readonly server: Server,
    readonly certificate: string,
  ) {}

  static async start(): Promise<WebhookReceiver> {
    const { certificate, key } = await certificateFor(NAME);
    const server = createServer({ cert: certificate, key });
    const receiver = new WebhookReceiver(server, certificate);
    server.on('request', (request, response) => void receiver.receive(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return receiver;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  url(path = '/hooks', name = NAME): string {
    return `https://${name}:${this.port}${path}`;
  }

  /** How a control plane is started that can reach it. */
  get reachable() {
    const resolve = async () => ['127.0.0.1'];
    return { networks: ['127.0.0.0/8'], trusted: [this.certificate], resolve };
  }

  /** What came to one path. */
  at(path: string): Received[] {
    return this.received.filter((one) => one.path === path);
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request).catch(() => '');
    this.received.push({ path: request.url ?? '', headers: request.headers, body });
    this.answer(response, request);
  }
}

/** Verifies a message as the specification's own library does, at the time `now`. Throws unless it was signed with the secret. */
export function verify({ body, headers }: Received, secret: string, now: number): Message {
  const clock = vi.spyOn(Date, 'now').mockReturnValue(now);
  try {
    return new Webhook(secret).verify(body, headers as Record<string, string>) as Message;
  } finally {
    clock.mockRestore();
  }
}

/** Returns a port of loopback on which nobody listens. */
export async function freePort(): Promise<number> {
  const server = createTcpServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
