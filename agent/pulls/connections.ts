import { readFileSync } from 'node:fs';
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls, createSecureContext, rootCertificates, type SecureContext } from 'node:tls';
import { PullRefused } from '../domain/pull-failure.js';
import { PATIENCE, endpointOf, opened, type Patience, type Reach } from './reach.js';

const MOST_CONNECTIONS = 16;
const MOST_HEADER_BYTES = 16 * 1024;
/**
 * Most requests of one pull, including redirects and tokens. An image has 127 layers at most, and Docker tries each
 * five times.
 */
const MOST_REQUESTS = 2_000;
/** An unwanted answer up to this size is read to its end, so that its connection can be used again. */
const MOST_DISCARDED = 64 * 1024;
/** Files in which systems keep the authorities that they trust. Docker trusts them as well; Node has its own. */
const SYSTEM_AUTHORITIES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

export interface OutgoingRequest {
  method: 'GET' | 'HEAD';
  url: URL;
  headers: OutgoingHttpHeaders;
  signal: AbortSignal;
}

type Connected = (error: Error | null, stream: Duplex) => void;

/** Sends requests to registries, over connections that stay open for the next request. */
export class Connections {
  private made = 0;
  private readonly agents: Readonly<Record<string, HttpAgent>>;
  private readonly contexts = new Map<string, SecureContext>();

  constructor(
    private readonly reach: Reach,
    /**
     * By origin `https://HOST[:PORT]`: certificates (PEM) of authorities that are trusted there besides this machine's.
     */
    private readonly authorities: ReadonlyMap<string, readonly string[]>,
    private readonly patience: Patience = PATIENCE,
    private readonly mostRequests = MOST_REQUESTS,
  ) {
    const options = { keepAlive: true, maxTotalSockets: MOST_CONNECTIONS, maxFreeSockets: MOST_CONNECTIONS };
    const [plain, encrypted] = [new HttpAgent(options), new HttpsAgent(options)];
    plain.createConnection = (options, callback) => this.open('http:', options, callback);
    encrypted.createConnection = (options, callback) => this.open('https:', options, callback);
    this.agents = { 'http:': plain, 'https:': encrypted };
  }

  /** Returns the answer once its headers have been read. Throws PullRefused. */
  async request(order: OutgoingRequest): Promise<IncomingMessage> {
    if (++this.made > this.mostRequests) throw new PullRefused('too_many_requests');
    try {
      return await this.send(order);
    } catch (error) {
      // The registry has closed a kept connection before it received this request.
      if (error instanceof StaleConnection) return await this.request(order);
      throw error;
    }
  }

  close(): void {
    for (const agent of Object.values(this.agents)) agent.destroy();
  }

  private send({ method, url, headers, signal }: OutgoingRequest): Promise<IncomingMessage> {
    const { silenceMs } = this.patience;
    return new Promise((resolve, reject) => {
      const sent = httpRequest({
        method,
        headers: {
          ...headers,
          host: url.host,
        },
        signal,
        protocol: url.protocol,
        ...endpointOf(url),
        path: url.pathname + url.search,
        agent: this.agents[url.protocol],
        maxHeaderSize: MOST_HEADER_BYTES,
      });
      // Bounds the wait for headers, also if the peer sends nothing or never ends them.
      const deadline = setTimeout(() => sent.destroy(new PullRefused('unreachable')), silenceMs);
      const settle = () => clearTimeout(deadline);
      sent.once('close', settle);
      sent.on('error', (error) => {
        settle();
        reject(isStale(sent.reusedSocket, error) ? new StaleConnection() : asRefusal(error));
      });
      sent.once('response', (response) => {
        settle();
        response.setTimeout(silenceMs, () => response.destroy(new PullRefused('unreachable')));
        response.on('error', () => undefined);
        resolve(response);
      });
      sent.end();
    });
  }

  /** Opens a connection; Node calls it for each new one. */
  private open(protocol: string, options: unknown, callback?: Connected): undefined {
    const { host, port } = options as { host: string; port: number };
    const url = new URL(`${protocol}//${isIP(host) === 6 ? `[${host}]` : host}:${port}`);
    this.connect(url, host).then(
      (socket) => callback?.(null, socket),
      (error: unknown) => callback?.(error as Error, undefined as unknown as Duplex),
    );
  }

  private async connect(url: URL, name: string): Promise<Duplex> {
    const socket = await this.reach.connect(url);
    if (url.protocol === 'http:') return socket;
    const encrypted = connectTls({
      socket,
      host: name,
      ...(isIP(name) === 0 ? { servername: name } : {}),
      ALPNProtocols: ['http/1.1'],
      secureContext: this.contextOf(url.origin),
    });
    return opened(encrypted, 'secureConnect', this.patience.handshakeMs);
  }

  private contextOf(origin: string): SecureContext {
    const own = this.authorities.get(origin) ?? [];
    const key = own.length > 0 ? origin : '';
    const known = this.contexts.get(key) ?? createSecureContext({ ca: [...machineAuthorities(), ...own] });
    this.contexts.set(key, known);
    return known;
  }
}

/** Discards an unwanted answer: reads a short one to its end, and cuts off a longer one. */
export function discard(response: IncomingMessage): void {
  const length = Number(response.headers['content-length'] ?? Infinity);
  if (length <= MOST_DISCARDED) response.resume();
  else response.destroy();
}

class StaleConnection extends Error {}

function isStale(wasUsedBefore: boolean, error: unknown): boolean {
  const { code } = error as { code?: string };
  return wasUsedBefore && (code === 'ECONNRESET' || code === 'EPIPE');
}

/**
 * Converts an error of Node to PullRefused, except an abort. Certificates have many error codes, connections and HTTP
 * have few.
 */
function asRefusal(error: Error): Error {
  if (error instanceof PullRefused) return error;
  const { code = '' } = error as { code?: string };
  if (error.name === 'AbortError') return error;
  if (code.startsWith('HPE_')) return new PullRefused('unsound', { cause: error });
  if (/CERT|ISSUER|SIGNATURE|CRL|^ERR_TLS|^ERR_SSL|^EPROTO/.test(code))
    return new PullRefused('certificate', { cause: error });
  return new PullRefused('unreachable', { cause: error });
}

let ofMachine: readonly string[] | undefined;

function machineAuthorities(): readonly string[] {
  ofMachine ??= readFirst(SYSTEM_AUTHORITIES) ?? rootCertificates;
  return ofMachine;
}

function readFirst(files: readonly string[]): string[] | undefined {
  for (const file of files) {
    try {
      return [readFileSync(file, 'utf8')];
    } catch {
      // This system keeps them in another file.
    }
  }
  return undefined;
}
