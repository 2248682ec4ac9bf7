import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { request } from 'node:https';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { MIB } from '../../shared/bytes.js';
import { createControlPlane } from '../../control-plane/app.js';
import { parseConfig } from '../../control-plane/config.js';
import { Daemon } from '../../scripts/daemon.js';
import { eventually } from '../../scripts/eventually.js';
import { silentLogger } from '../../shared/logger.js';
import { certificateFor } from '../harness/certificate.js';
import { FakeAgent } from '../harness/fake-agent.js';

const PROGRAM = fileURLToPath(new URL('../../dist/bundle/control-plane.js', import.meta.url));
const PATIENCE_MS = 60_000;
const OPERATOR = { email: 'op@example.com', password: 'operator password' };
const NAME = 'gpurent.example.com';
/** Half of each at the API, half at the gateway. */
const CROWD = { silent: 2_000, halfOpen: 2_000, flooding: 400 };
/** Begun on one connection. */
const ENROLLMENTS = 400;
const REQUESTS = 20;
/** How a ClientHello of TLS begins, and the preface of HTTP/2. */
const BEGINNINGS = { api: Buffer.from('1603010200010001fc0303', 'hex'), gateway: Buffer.from('PRI * HTTP/2.0\r\n') };

const folder = mkdtempSync(join(tmpdir(), 'gpurent-strangers-'));
const agents: FakeAgent[] = [];
const sockets: Socket[] = [];
const sessions: ClientHttp2Session[] = [];
let daemon: Daemon;
let ca: string;
let addresses: { http: string; grpc: string };
let session: string | undefined;

beforeAll(async () => {
  const made = await certificateFor(NAME);
  ca = made.certificate;
  writeFileSync(join(folder, 'cert.pem'), made.certificate);
  writeFileSync(join(folder, 'key.pem'), made.key);
  const settings = {
    GPURENT_DATABASE: join(folder, 'gpurent.db'),
    GPURENT_HTTP_ADDRESS: '127.0.0.1:0',
    GPURENT_HTTP_TLS: 'on',
    GPURENT_GRPC_ADDRESS: '127.0.0.1:0',
    GPURENT_TLS_CERTIFICATE_FILE: join(folder, 'cert.pem'),
    GPURENT_TLS_KEY_FILE: join(folder, 'key.pem'),
    GPURENT_GRPC_TLS: 'off',
    GPURENT_LOG_LEVEL: 'warn',
  };
  const controlPlane = createControlPlane(parseConfig(settings), silentLogger);
  await controlPlane.createOperator(OPERATOR.email, OPERATOR.password);
  await controlPlane.stop();
  daemon = Daemon.start('control-plane', PROGRAM, ['serve'], settings, join(folder, 'log'));
  addresses = await daemon.firstLine();
  session = (await ask<{ token: string }>('POST', '/v1/auth/sign-in', OPERATOR)).token;
}, PATIENCE_MS);
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  for (const session of sessions) session.destroy();
  for (const agent of agents) agent.close();
  await daemon.stop('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

/** Asks the API on a connection of its own. Rejects unless it succeeds. */
function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const [host = '', port = ''] = addresses.http.split(':');
  return new Promise((resolve, reject) => {
    const authorization = session === undefined ? {} : { authorization: `Bearer ${session}` };
    const headers = { ...authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) };
    const options = { host, port, path, method, headers, ca, servername: NAME, agent: false, timeout: PATIENCE_MS };
    const asking = request(options, (response) => {
      let text = '';
      response.on('data', (chunk) => (text += String(chunk)));
      response.on('end', () =>
        (response.statusCode ?? 500) < 300 ? resolve(JSON.parse(text) as T) : reject(new Error(text)),
      );
    });
    asking.on('timeout', () => asking.destroy(new Error('no answer')));
    asking.on('error', reject);
    asking.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

async function enroll(): Promise<FakeAgent> {
  const { token } = await ask<{ token: string }>('POST', '/v1/operator/enrollment-tokens', { max_uses: 1 });
  const agent = await FakeAgent.enroll(addresses.grpc, token, { gpus: 1 });
  agents.push(agent);
  await agent.connect();
  return agent;
}

async function dial(where: 'api' | 'gateway'): Promise<Socket> {
  const [host = '', port = ''] = (where === 'api' ? addresses.http : addresses.grpc).split(':');
  const socket = connect({ host, port: Number(port) });
  socket.on('error', () => undefined);
  sockets.push(socket);
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
  return socket;
}

/** Begins enrollments of a MiB each on one connection, and ends none. */
function dripEnrollments(count: number): void {
  const session = connectHttp2(`http://${addresses.grpc}`);
  session.on('error', () => undefined);
  sessions.push(session);
  const headers = { 'content-type': 'application/grpc', te: 'trailers' };
  const path = '/gpurent.agent.v1.AgentService/Enroll';
  for (let index = 0; index < count; index++) {
    const stream = session.request({ ':method': 'POST', ':path': path, ...headers });
    stream.on('error', () => undefined);
    const head = Buffer.alloc(5);
    head.writeUInt32BE(MIB - 5, 1);
    stream.write(Buffer.concat([head, Buffer.alloc(MIB - 6)]));
  }
}

/** Sends without end, as fast as it is taken, until it is cut. */
function flood(socket: Socket, beginning: Buffer): void {
  socket.write(beginning);
  const chunk = Buffer.alloc(64 * 1024, 0x41);
  const more = () => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on('drain', more);
  more();
}

function memoryMib(): number {
  const status = readFileSync(`/proc/${daemon.pid}/status`, 'utf8');
  return (Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1024) / MIB;
}

it('thousands of strangers cost little memory, and keep out no renter and no host', async () => {
  const first = await enroll();
  for (let index = 0; index < REQUESTS; index++) await ask('GET', '/v1/operator/machines');
  const before = memoryMib();
  let most = before;
  const meter = setInterval(() => (most = Math.max(most, memoryMib())), 50);
  try {
    for (const where of ['api', 'gateway'] as const) {
      for (let index = 0; index < CROWD.silent / 2; index++) await dial(where);
      for (let index = 0; index < CROWD.halfOpen / 2; index++) (await dial(where)).write(BEGINNINGS[where]);
      for (let index = 0; index < CROWD.flooding / 2; index++) flood(await dial(where), BEGINNINGS[where]);
    }
    dripEnrollments(ENROLLMENTS);
    const took: number[] = [];
    for (let index = 0; index < REQUESTS; index++) {
      const begun = performance.now();
      await ask('GET', '/v1/operator/machines');
      took.push(performance.now() - begun);
    }
    const begun = performance.now();
    const second = await enroll();
    const enrolledMs = performance.now() - begun;
    await eventually('both hosts', async () => {
      for (const host of [first, second]) host.beat();
      const { items } = await ask<{ items: { connected: boolean }[] }>('GET', '/v1/operator/machines');
      return items.length === 2 && items.every(({ connected }) => connected);
    });
    const crowd = Object.entries(CROWD).map(([kind, count]) => `${count} ${kind}`);
    process.stdout.write(
      `${crowd.join(', ')} connections and ${ENROLLMENTS} unfinished enrollments: memory ${Math.round(before)} MiB before, ${Math.round(most)} at most; ` +
        `a request took ${Math.round(Math.max(...took))} ms at most, a new host ${Math.round(enrolledMs)} ms\n`,
    );
    expect([first.connected, second.connected]).toEqual([true, true]);
    // What the crowd has sent and what its connections hold would be a gigabyte and more, kept.
    expect(most - before).toBeLessThan(250);
  } finally {
    clearInterval(meter);
  }
});
