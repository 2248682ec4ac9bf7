import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttps } from 'node:https';
import { createServer as createTcp, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { certificateFor } from '../harness/certificate.js';
import { EventReader } from '../harness/event-reader.js';
import type { Benchmark } from './benchmark.js';
import { MeasuredControlPlane } from './measured-control-plane.js';
import { residentKbOf } from './process-costs.js';

const ORGANIZATIONS = 50;
/** Organizations whose webhook never gets an answer. */
const DEAD = 10;
const EVENTS_A_MINUTE = 10_000;
const EVENTS = 10_000;
const SAMPLE_MS = 250;
/** Webhooks come at least once and in any order; the last ones may wait for a second attempt. */
const DELIVERED_MS = 120_000;

/**
 * Makes 10,000 events in a minute in 50 organizations, first while nobody listens, then with a stream and a webhook for each
 * organization, ten of which never answer: processor time of the control plane for each event, and its memory.
 */
export const events: Benchmark = async () => {
  const receiver = await Receiver.start();
  const controlPlane = await MeasuredControlPlane.start(receiver.settings);
  try {
    const names = Array.from({ length: ORGANIZATIONS }, (_, index) => `renter-${index}@example.com`);
    const accounts = await Promise.all(names.map((email) => controlPlane.signUp(email)));
    const renters = accounts.map(({ token }) => controlPlane.measured(token));
    await makeEvents(renters, EVENTS / 10);
    const unheard = await measure(controlPlane, () => makeEvents(renters, EVENTS));
    await Promise.all(
      accounts.map(({ token }, index) =>
        controlPlane.connect(token).post('/v1/webhook-endpoints', { body: { url: receiver.url(index) } }),
      ),
    );
    const readers = await Promise.all(
      accounts.map(({ token }) => EventReader.open(`${controlPlane.url}/v1/events`, token)),
    );
    const [before, streamed] = [receiver.count, () => readers.reduce((sum, { events }) => sum + events.length, 0)];
    let late = 0;
    const heard = await measure(controlPlane, async () => {
      await makeEvents(renters, EVENTS);
      const ended = performance.now();
      const delivered = (EVENTS * (ORGANIZATIONS - DEAD)) / ORGANIZATIONS;
      const isDone = () => streamed() >= EVENTS && receiver.count - before >= delivered;
      await eventually('every stream and webhook to have every event', isDone, DELIVERED_MS);
      late = performance.now() - ended;
    });
    for (const reader of readers) reader.kill();
    return {
      'an event that nobody reads, us': unheard.us,
      'an event with a stream and a webhook, us': heard.us,
      'events received by streams': streamed(),
      'messages received by webhooks': receiver.count - before,
      'the last one came after the last event, ms': Math.round(late),
      'memory at most while nobody reads, MB': unheard.memoryMb,
      'memory at most with streams and webhooks, MB': heard.memoryMb,
    };
  } finally {
    await controlPlane.stop();
    receiver.stop();
  }
};

/** Makes events at an even pace: each renter creates an API key and revokes it, in turns. */
async function makeEvents(renters: readonly ApiClient[], count: number): Promise<void> {
  const began = performance.now();
  let made = 0;
  const next = async () => {
    const due = began + (made++ * 60_000) / EVENTS_A_MINUTE;
    await sleep(Math.max(due - performance.now(), 0));
  };
  const work = async (renter: ApiClient) => {
    while (made < count) {
      await next();
      const { key } = await renter.post<{ key: { id: string } }>('/v1/api-keys', { name: 'bench', kind: 'personal' });
      await next();
      await renter.delete(`/v1/api-keys/${key.id}`);
    }
  };
  await Promise.all(renters.map(work));
}

/** Returns the processor time of an event, in microseconds, and the most memory meanwhile. */
async function measure(
  controlPlane: MeasuredControlPlane,
  work: () => Promise<void>,
): Promise<{ us: number; memoryMb: number }> {
  let memory = 0;
  const sampling = setInterval(() => (memory = Math.max(memory, residentKbOf(controlPlane.pid))), SAMPLE_MS);
  const cpu = controlPlane.cpuMs();
  try {
    await work();
  } finally {
    clearInterval(sampling);
  }
  return { us: Math.round(((controlPlane.cpuMs() - cpu) / EVENTS) * 1_000), memoryMb: Math.round(memory / 1_024) };
}

/** The HTTPS server of most organizations, and one that never answers for the others. */
class Receiver {
  count = 0;

  private constructor(
    private readonly folder: string,
    private readonly alive: Server,
    private readonly dead: Server,
  ) {}

  static async start(): Promise<Receiver> {
    const { certificate, key } = await certificateFor('127.0.0.1');
    const folder = mkdtempSync(join(tmpdir(), 'gpurent-bench-'));
    writeFileSync(join(folder, 'ca.pem'), certificate);
    const alive = createHttps({ cert: certificate, key });
    const receiver = new Receiver(folder, alive, createTcp());
    alive.on('request', (request, response) => {
      receiver.count += 1;
      request.resume();
      response.writeHead(204).end();
    });
    for (const server of [alive, receiver.dead])
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return receiver;
  }

  /** What lets a control plane reach it. */
  get settings(): Record<string, string> {
    return { GPURENT_WEBHOOK_NETWORKS: '127.0.0.0/8', NODE_EXTRA_CA_CERTS: join(this.folder, 'ca.pem') };
  }

  /** Returns the address for the organization with this index. */
  url(index: number): string {
    const { port } = (index < DEAD ? this.dead : this.alive).address() as AddressInfo;
    return `https://127.0.0.1:${port}/hooks`;
  }

  stop(): void {
    this.alive.close();
    this.dead.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
