import { createHash, timingSafeEqual } from 'node:crypto';
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { markOf, PullRefused, type PullRefusal } from '../domain/pull-failure.js';
import { Connections } from './connections.js';
import { refuseOtherPlaces, withoutOtherPlaces } from './manifest.js';
import { RELAY_REPOSITORY, RELAY_USER, type RelayOrder } from './order.js';
import { PATIENCE, Reach, type Patience, type Resolve } from './reach.js';
import { readWhole } from './read-whole.js';
import { Upstream, type Ask } from './upstream.js';

const MOST_MANIFEST_BYTES = 4 * 1024 * 1024;
/** Docker fetches three layers at once, unless the host owner configures more. */
const MOST_AT_ONCE = 32;
/**
 * Request headers that go to the registry. A manifest is always requested as a whole, because only then can it be
 * checked.
 */
const PASSED_UP = { manifests: ['accept'], blobs: ['accept', 'range'] } as const;
/** Range of a request with which Docker resumes a blob, whose beginning was checked when it came. */
const LATER_PART = /^bytes=0*[1-9]/;
const PASSED_DOWN = ['content-type', 'content-length', 'content-range', 'docker-content-digest'] as const;
const DIGEST = /^[a-z0-9]+(?:[+._-][a-z0-9]+)*:[a-f0-9]{32,128}$/;
const TARGET = new RegExp(`^/v2/${RELAY_REPOSITORY}/(manifests|blobs)/([^/?#]{1,256})$`);

type Kind = keyof typeof PASSED_UP;

/** Answers to Docker for refusals. After a status below 500, Docker does not repeat the request. */
const ANSWERS: Partial<Record<PullRefusal, readonly [status: number, code: string]>> = {
  not_found: [404, 'MANIFEST_UNKNOWN'],
  rate_limited: [429, 'TOOMANYREQUESTS'],
  unreachable: [503, 'UNAVAILABLE'],
  unresolved: [503, 'UNAVAILABLE'],
  server_error: [502, 'UNKNOWN'],
};
const FINAL = [403, 'DENIED'] as const;

/** Parts that tests replace. */
export interface RelayParts {
  resolve?: Resolve;
  ownAddresses?: readonly string[];
  patience?: Partial<Patience>;
  mostRequests?: number;
}

/** Serves one repository of one registry to Docker, and requests it from that registry in Docker's place. */
export class Relay {
  private readonly server: Server;
  private readonly connections: Connections;
  private readonly reach: Reach;
  private upstreams: Promise<Upstream[]> | undefined;
  private passed = 0;
  private underWay = 0;

  constructor(
    private readonly order: RelayOrder,
    parts: RelayParts = {},
  ) {
    const { registries, allowed, insecureNetworks } = order;
    const withoutTls = registries.filter(({ origin }) => origin.startsWith('http:'));
    const policy = {
      allowed,
      insecureNetworks,
      trustedOrigins: registries.filter(({ isMirror }) => isMirror).map(({ origin }) => new URL(origin).origin),
      insecureOrigins: withoutTls.map(({ origin }) => new URL(origin).origin),
    };
    const patience = { ...PATIENCE, ...parts.patience };
    this.reach = new Reach(policy, parts.resolve, parts.ownAddresses, patience);
    const authorities = new Map(registries.map(({ origin, authorities: own }) => [new URL(origin).origin, own]));
    this.connections = new Connections(this.reach, authorities, patience, parts.mostRequests);
    const limits = { maxHeaderSize: 16 * 1024, headersTimeout: 10_000, requestTimeout: 10_000 };
    this.server = createServer(limits, (request, response) => void this.answer(request, response));
    this.server.maxConnections = 2 * MOST_AT_ONCE;
  }

  /** Listens on loopback. Returns the port. */
  listen(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen({ host: '127.0.0.1', port: 0 }, () => resolve((this.server.address() as AddressInfo).port));
    });
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
    this.connections.close();
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => undefined);
    request.resume();
    if (!this.isDocker(request.headers.authorization)) {
      response.setHeader('www-authenticate', 'Basic realm="gpurent"');
      return sendError(response, 401, 'UNAUTHORIZED', 'this relay serves the agent that has started it');
    }
    const left = new AbortController();
    response.once('close', () => left.abort());
    try {
      await this.serve(request, response, left.signal);
    } catch (error) {
      if (left.signal.aborted) return;
      if (response.headersSent) return void response.destroy();
      const refusal = error instanceof PullRefused ? error.refusal : 'unreachable';
      const [status, code] = ANSWERS[refusal] ?? FINAL;
      sendError(response, status, code, markOf(refusal));
    }
  }

  private isDocker(authorization = ''): boolean {
    const expected = `Basic ${Buffer.from(`${RELAY_USER}:${this.order.secret}`).toString('base64')}`;
    return timingSafeEqual(hash(authorization), hash(expected));
  }

  private async serve(request: IncomingMessage, response: ServerResponse, signal: AbortSignal): Promise<void> {
    const { method, url = '' } = request;
    const [path = ''] = url.split('?');
    const isRead = method === 'GET' || method === 'HEAD';
    if (isRead && path === '/v2/')
      return void response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    const [, found, reference = ''] = TARGET.exec(path) ?? [];
    const kind = found as Kind | undefined;
    const isAsked = DIGEST.test(reference) || (kind === 'manifests' && reference === this.order.reference);
    if (!isRead || kind === undefined || !isAsked)
      return sendError(response, 404, 'NAME_UNKNOWN', 'this relay serves one repository');
    const headers = pick(request.headers, PASSED_UP[kind]);
    const ask = { method, path: `${kind}/${reference}`, headers, signal } as const;
    if (this.underWay >= MOST_AT_ONCE) throw new PullRefused('too_many_requests');
    this.underWay++;
    try {
      await this.relay(ask, kind, response);
    } finally {
      this.underWay--;
    }
  }

  private async relay(ask: Ask, kind: Kind, response: ServerResponse): Promise<void> {
    if (this.passed >= this.order.mostBytes) throw new PullRefused('too_large');
    const found = await this.find(ask);
    const headers = pick(found.headers, PASSED_DOWN);
    const status = found.statusCode ?? 200;
    if (ask.method === 'HEAD') {
      found.resume();
      response.writeHead(status, headers).end();
    } else if (kind === 'manifests') {
      const manifest = await readWhole(found, MOST_MANIFEST_BYTES);
      refuseOtherPlaces(manifest);
      this.passed += manifest.length;
      response.writeHead(status, { ...headers, 'content-length': manifest.length }).end(manifest);
    } else {
      const isLaterPart = status === 206 && LATER_PART.test(String(ask.headers.range));
      await this.passOn(found, isLaterPart, response, () => response.writeHead(status, headers));
    }
  }

  /**
   * Asks the registries in Docker's order: mirrors of Docker Hub first, and the next if one cannot serve. Throws
   * PullRefused.
   */
  private async find(ask: Ask): Promise<IncomingMessage> {
    const upstreams = await (this.upstreams ??= this.makeUpstreams());
    for (const upstream of upstreams.slice(0, -1)) {
      const found = await upstream.ask(ask).catch(() => undefined);
      ask.signal.throwIfAborted();
      if (found) return found;
    }
    const last = upstreams.at(-1);
    if (!last) throw new PullRefused('server_error');
    return last.ask(ask);
  }

  private async makeUpstreams(): Promise<Upstream[]> {
    const { registries, repository, credentials } = this.order;
    return Promise.all(
      registries.map(async ({ origin: named, isMirror }) => {
        const url = new URL(named);
        if (!isMirror && url.protocol === 'https:' && (await this.reach.isInsecure(url).catch(() => false))) {
          // The port in its name stays: Docker uses 80 if there is none.
          url.protocol = 'http:';
        }
        return new Upstream(
          { origin: url.origin, repository, credentials: isMirror ? null : credentials },
          this.connections,
        );
      }),
    );
  }

  private async passOn(
    found: IncomingMessage,
    isLaterPart: boolean,
    response: ServerResponse,
    begin: () => void,
  ): Promise<void> {
    const declared = Number(found.headers['content-length'] ?? 0);
    if (this.passed + declared > this.order.mostBytes) {
      this.passed = this.order.mostBytes;
      found.destroy();
      throw new PullRefused('too_large');
    }
    const counted = this.count(found);
    const parts = isLaterPart ? counted : withoutOtherPlaces(counted);
    // A refusal of the first part can still be sent as an answer, because no headers have been sent yet.
    const first = await parts.next();
    begin();
    await pipeline(chain(first, parts), response);
  }

  private async *count(found: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const part of found) {
      this.passed += part.length;
      if (this.passed > this.order.mostBytes) throw new PullRefused('too_large');
      yield part;
    }
  }
}

async function* chain(first: IteratorResult<Buffer>, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  if (!first.done) yield first.value;
  yield* rest;
}

function hash(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function pick(headers: IncomingMessage['headers'], names: readonly string[]): OutgoingHttpHeaders {
  return Object.fromEntries(names.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])));
}

/**
 * Sends an error in the format of the distribution project. Docker repeats the message of the body for a status below
 * 500, and the status text for one above.
 */
function sendError(response: ServerResponse, status: number, code: string, message: string): void {
  const body = JSON.stringify({ errors: [{ code, message }] });
  response.writeHead(status, message, { 'content-type': 'application/json' }).end(body);
}
