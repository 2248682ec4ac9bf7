import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer as createHttpServer, get, type Server as HttpServer } from 'node:http';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { ProxyClient, proxyUnit } from '../../agent/proxy/client.js';
import type { GuardedPort } from '../../agent/proxy/state.js';
import { Supervisor } from '../../agent/proxy/supervisor.js';
import { systemClock } from '../../shared/clock.js';
import { silentLogger } from '../../shared/logger.js';
import { eventually } from '../../scripts/eventually.js';
import { ManualClock } from '../harness/manual-clock.js';
import { PROXY } from '../harness/proxy.js';

const HOST = '127.0.0.1';
const TOKEN = 'f00d'.repeat(12);
const NEVER_MS = 3_600_000;

let folder: string;
let clock: ManualClock;
let supervisor: Supervisor | undefined;
/** As systemd holds it. */
let unit: Server | undefined;
let agents: Set<Socket>;
let app: HttpServer;
let appPort: number;
let clients: ProxyClient[];
/** How many workers the supervisor has seen end by themselves. */
let ended: number;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-proxy-'));
  clock = new ManualClock();
  clients = [];
  ended = 0;
  agents = new Set();
  app = createHttpServer((_, response) => response.end('the app'));
  new WebSocketServer({ server: app }).on('connection', (socket) =>
    socket.on('message', (data) => socket.send(`echo ${(data as Buffer).toString()}`)),
  );
  appPort = await listen(app);
  await runSupervisor(NEVER_MS);
});
afterEach(async () => {
  for (const client of clients) client.stop();
  await stopSupervisor();
  app.close();
  app.closeAllConnections();
  rmSync(folder, { recursive: true });
});

const logger = pino(
  { level: 'warn' },
  {
    write: (line: string) => {
      if (line.includes('the worker of guarded ports has ended')) ended++;
    },
  },
);

async function runSupervisor(idleMs: number): Promise<void> {
  await stopSupervisor();
  const made = new Supervisor({ entry: PROXY, idleMs, clock, logger });
  const server = createServer((agent) => {
    agents.add(agent);
    made.serve(agent);
  });
  [supervisor, unit] = [made, server];
  await new Promise<void>((resolve) => server.listen(join(folder, 'proxy.sock'), resolve));
}

async function stopSupervisor(): Promise<void> {
  supervisor?.stop();
  for (const agent of agents) agent.destroy();
  if (unit) await new Promise((resolve) => unit?.close(resolve));
  [supervisor, unit] = [undefined, undefined];
}

function agent(): ProxyClient {
  const client = new ProxyClient(proxyUnit(join(folder, 'proxy.sock')), HOST, systemClock, silentLogger);
  clients.push(client);
  client.start();
  return client;
}

function listen(server: Server | HttpServer): Promise<number> {
  return new Promise((resolve) => server.listen(0, HOST, () => resolve((server.address() as AddressInfo).port)));
}

async function guardedPort(): Promise<GuardedPort> {
  const server = createServer();
  const hostPort = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  const tokenHash = createHash('sha256').update(TOKEN).digest('hex');
  return { hostPort, tokenHash, target: { host: HOST, port: appPort } };
}

/** The status that is answered, on a connection of its own. */
function visit({ hostPort }: GuardedPort): Promise<number | 'cut off'> {
  return new Promise((resolve) => {
    get({ host: HOST, port: hostPort, path: `/?token=${TOKEN}`, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    }).on('error', () => resolve('cut off'));
  });
}

async function webSocket({ hostPort }: GuardedPort): Promise<{ socket: WebSocket; echo: () => Promise<string> }> {
  const socket = new WebSocket(`ws://${HOST}:${hostPort}/?token=${TOKEN}`);
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  const echo = () =>
    new Promise<string>((resolve, reject) => {
      socket.once('message', (data) => resolve((data as Buffer).toString()));
      socket.once('close', () => reject(new Error('closed')));
      socket.send('hello');
    });
  return { socket, echo };
}

/** Process ids of the workers of this test. */
function workers(): number[] {
  try {
    const found = execFileSync('pgrep', ['-P', String(process.pid), '-f', `${PROXY} worker`], { encoding: 'utf8' });
    return found.trim().split('\n').map(Number);
  } catch {
    return [];
  }
}

describe('The access proxy', () => {
  it('starts a process per instance with its first visitor, and ends it when it is idle', async () => {
    await runSupervisor(300);
    const [one, two] = [await guardedPort(), await guardedPort()];
    const client = agent();
    await client.set('one', [one]);
    await client.set('two', [two]);
    expect(workers()).toEqual([]);
    expect(await visit(one)).toBe(200);
    // Its process is there for as long as it is in use, and no longer.
    const first = await webSocket(one);
    expect(workers()).toHaveLength(1);
    const { socket, echo } = await webSocket(two);
    expect(workers()).toHaveLength(2);
    first.socket.close();
    await eventually('only the one that is in use', () => workers().length === 1);
    expect(await echo()).toBe('echo hello');
    socket.close();
    await eventually('none', () => workers().length === 0);
    expect(await visit(one)).toBe(200);
  });

  it('costs as much as it prints', async () => {
    const one = await guardedPort();
    await agent().set('one', [one]);
    const begun = performance.now();
    await visit(one);
    const firstMs = Math.round(performance.now() - begun);
    const [pid] = workers();
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
    const [rss = 0, pss = 0] = ['Rss', 'Pss'].map(
      (name) => Number(new RegExp(`^${name}: +(\\d+)`, 'm').exec(rollup)?.[1]) / 1024,
    );
    const memory = `${Math.round(rss)} MiB, ${Math.round(pss)} MiB where others share it`;
    process.stdout.write(`a worker of guarded ports: ${firstMs} ms at the first visit, ${memory}\n`);
    expect(rss).toBeLessThan(128);
  });

  it('that loses one worker cuts off no neighbour, and serves again', async () => {
    const [one, two] = [await guardedPort(), await guardedPort()];
    const client = agent();
    await client.set('one', [one]);
    await client.set('two', [two]);
    expect(await visit(one)).toBe(200);
    const [pid = 0] = workers();
    const { echo, socket } = await webSocket(two);
    process.kill(pid, 'SIGKILL');
    await eventually('its end', () => ended === 1);
    expect(await echo()).toBe('echo hello');
    expect(await visit(one)).toBe(200);
    socket.close();
  });

  it('ends a worker that does not answer', async () => {
    const one = await guardedPort();
    await agent().set('one', [one]);
    expect(await visit(one)).toBe(200);
    const [pid = 0] = workers();
    process.kill(pid, 'SIGSTOP');
    const stuck = visit(one);
    await eventually('its connection to be on its way', () => clock.waiting > 0);
    clock.advance(16_000);
    expect(await stuck).toBe('cut off');
    await eventually('its end', () => !workers().includes(pid));
    expect(await visit(one)).toBe(200);
  });

  it('starts no more workers for an instance than twelve in a minute', async () => {
    const one = await guardedPort();
    await agent().set('one', [one]);
    for (let crashes = 0; crashes < 12; crashes++) {
      expect(await visit(one)).toBe(200);
      for (const pid of workers()) process.kill(pid, 'SIGKILL');
      await eventually('its end', () => ended === crashes + 1);
    }
    expect(await visit(one)).toBe('cut off');
    clock.advance(61_000);
    expect(await visit(one)).toBe(200);
  });

  it('goes on after an agent that tells what cannot be applied', async () => {
    const broken = connect({ path: join(folder, 'proxy.sock') });
    const ended = once(broken, 'close');
    broken.write(`${JSON.stringify({ revision: 1 })}\n`);
    await ended;
    const port = await guardedPort();
    await agent().set('one', [port]);
    expect(await visit(port)).toBe(200);
  });

  it('goes on without its agent, and closes only what the next one does not know once that has looked everywhere', async () => {
    const [one, two] = [await guardedPort(), await guardedPort()];
    const first = agent();
    await first.set('one', [one]);
    await first.set('two', [two]);
    first.complete();
    const { socket, echo } = await webSocket(one);
    first.stop();
    expect(await visit(two)).toBe(200);
    const next = agent();
    await next.set('one', [one]);
    expect(await visit(two)).toBe(200);
    next.complete();
    await eventually('the end of what is gone', async () => (await visit(two)) === 'cut off');
    expect(await echo()).toBe('echo hello');
    socket.close();
  });

  it('lets nobody go on who came in by a token that holds no more', async () => {
    const one = await guardedPort();
    const client = agent();
    await client.set('one', [one]);
    const { socket } = await webSocket(one);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    await client.set('one', [{ ...one, tokenHash: createHash('sha256').update('another').digest('hex') }]);
    await closed;
    expect(await visit(one)).toBe(401);
  });

  it('is told everything again after it was restarted', async () => {
    const one = await guardedPort();
    const client = agent();
    await client.set('one', [one]);
    await runSupervisor(NEVER_MS);
    await eventually('the port', async () => (await visit(one)) === 200);
  });

  it('opens a port that somebody had taken while it was restarted', async () => {
    const [one, two] = [await guardedPort(), await guardedPort()];
    const client = agent();
    await client.set('one', [one]);
    await stopSupervisor();
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(one.hostPort, HOST, resolve));
    await runSupervisor(NEVER_MS);
    const isTold = () =>
      client.set('two', [two]).then(
        () => true,
        () => false,
      );
    await eventually('the reply to all that was sent before', isTold);
    await new Promise((resolve) => taken.close(resolve));
    await eventually('the port', async () => (await visit(one)) === 200);
  });

  it('says which port it could not open, and opens it later', async () => {
    const one = await guardedPort();
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(one.hostPort, HOST, resolve));
    const client = agent();
    await expect(client.set('one', [one])).rejects.toThrow(`port ${one.hostPort}: listen EADDRINUSE`);
    await new Promise((resolve) => taken.close(resolve));
    await client.set('one', [one]);
    expect(await visit(one)).toBe(200);
  });
});

describe('The agent', () => {
  it.each([
    ['no JSON', 'hello\n'],
    ['no reply', '{"revision":1}\n'],
    ['a line without an end', 'x'.repeat(1024 * 1024 + 1)],
  ])('ends a proxy that says %s, and dials again', async (_, words) => {
    let visits = 0;
    const path = join(folder, 'other.sock');
    const other = createServer((socket) => {
      visits++;
      socket.on('error', () => undefined);
      socket.write(words);
    });
    await new Promise<void>((resolve) => other.listen(path, resolve));
    const client = new ProxyClient(proxyUnit(path), HOST, systemClock, silentLogger);
    clients.push(client);
    client.start();
    await eventually('another connection', () => visits > 1);
    client.stop();
    other.close();
  });
});
