import { rmSync } from 'node:fs';
import {
  createServer,
  request,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { SetupError, messageOf } from '../../shared/coded-error.js';
import type { GpuTestResult } from '../domain/gpu-verdict.js';
import type { Metrics } from './metrics.js';
import type { Snapshot } from './snapshot.js';

const PATIENCE_MS = 10_000;
/** A test container may take 20 seconds, and what it leaves is removed first. */
const TEST_PATIENCE_MS = 60_000;

/** What the host owner can ask of the agent. */
export interface Answering {
  snapshot(): Promise<Snapshot>;
  runUpkeep(): Promise<void>;
  testGpus(): Promise<GpuTestResult>;
}

/**
 * Serves `/status` and `/metrics` to the host owner, runs the upkeep at `POST /upkeep` and the test of GPUs at `POST /gpu-test`: on a
 * socket that only root can open and, where configured, `/metrics` on loopback.
 */
export class StatusServer {
  /** Made at the first scrape: without scrapes its library is not loaded. */
  private metrics: Promise<Metrics> | undefined;
  private readonly servers: Server[] = [];
  /** The addresses on which it listens. */
  private readonly listening = new Set<string>();
  private isClosed = false;

  constructor(
    private readonly agent: Answering,
    private readonly socket: string,
    /** Where Prometheus scrapes `/metrics`; null: nowhere. */
    private readonly metricsAddress: { host: string; port: number } | null,
  ) {}

  /** Starts to listen on the socket, unless it does. Throws SetupError if it cannot. */
  async open(): Promise<void> {
    if (this.isClosed || this.listening.has(this.socket)) return;
    const mask = process.umask(0o177);
    try {
      rmSync(this.socket, { force: true });
      await this.listen((asked, response) => void this.serve(asked, response, true), { path: this.socket });
    } finally {
      process.umask(mask);
    }
  }

  /** Starts to listen where Prometheus scrapes, unless it does. Throws SetupError if it cannot. */
  async openMetrics(): Promise<void> {
    const { metricsAddress: at } = this;
    if (!at || this.isClosed || this.listening.has(`${at.host}:${at.port}`)) return;
    await this.listen((asked, response) => void this.serve(asked, response, false), at);
  }

  close(): void {
    this.isClosed = true;
    for (const server of this.servers.splice(0)) {
      server.close();
      server.closeAllConnections();
    }
  }

  private listen(listener: RequestListener, at: { path: string } | { host: string; port: number }): Promise<void> {
    const server = createServer(listener);
    const address = 'path' in at ? at.path : `${at.host}:${at.port}`;
    return new Promise((resolve, reject) => {
      server.once('error', (error) =>
        reject(new SetupError(`cannot listen on ${address}: ${messageOf(error)}`, { cause: error })),
      );
      server.listen(at, () => {
        this.servers.push(server);
        this.listening.add(address);
        resolve();
      });
    });
  }

  private async serve({ method, url }: IncomingMessage, response: ServerResponse, isOwner: boolean): Promise<void> {
    try {
      if (url === '/metrics') {
        this.metrics ??= import('./metrics.js').then(({ Metrics }) => new Metrics());
        const metrics = await this.metrics;
        const text = await metrics.render(await this.agent.snapshot());
        response.writeHead(200, { 'content-type': metrics.contentType }).end(text);
      } else if (url === '/status' && isOwner) {
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify(await this.agent.snapshot()));
      } else if (url === '/upkeep' && method === 'POST' && isOwner) {
        await this.agent.runUpkeep();
        response.writeHead(204).end();
      } else if (url === '/gpu-test' && method === 'POST' && isOwner) {
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify(await this.agent.testGpus()));
      } else response.writeHead(404).end();
    } catch (error) {
      response.writeHead(503).end(`${messageOf(error)}\n`);
    }
  }
}

/** Returns the body that the agent of this host answers on its socket. Throws SetupError when the agent does not run. */
export function askAgent(socket: string, path: '/status' | '/metrics' | '/gpu-test'): Promise<string> {
  const how =
    path === '/gpu-test' ? { method: 'POST', timeout: TEST_PATIENCE_MS } : { method: 'GET', timeout: PATIENCE_MS };
  return new Promise((resolve, reject) => {
    const asking = request({ socketPath: socket, path, ...how }, (response) => {
      let text = '';
      response.on('data', (chunk) => (text += String(chunk)));
      response.on('end', () =>
        response.statusCode === 200 ? resolve(text) : reject(new SetupError(`the agent cannot answer: ${text.trim()}`)),
      );
    });
    asking.on('timeout', () => asking.destroy(new Error('it does not answer')));
    asking.on('error', (error) =>
      reject(
        new SetupError(`the agent does not run on this host, or you are not root (${messageOf(error)})`, {
          cause: error,
        }),
      ),
    );
    asking.end();
  });
}
