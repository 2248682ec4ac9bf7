import { request, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { InstanceBody } from '../harness/api-client.js';
import { statusIs } from '../harness/control-plane.js';
import { DEBIAN_IMAGE } from '../harness/docker.js';
import { eventually } from '../../scripts/eventually.js';
import { RealPlatform, RealRenter } from '../harness/real.js';
import { takePort } from '../harness/worker.js';

const LONG_MS = 180_000;
const METRICS = `127.0.0.1:${takePort()}`;
/** By night there are more. */
const VISITS = Number(process.env['TEST_FUZZ_REQUESTS'] ?? 300);
const ODD = [
  'GET / HTTP/1.0',
  'CONNECT x:1 HTTP/1.1',
  'GET / HTTP/9',
  'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz',
  'GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade',
  `GET /${'x'.repeat(60_000)} HTTP/1.1`,
  '\x16\x03\x01',
];

let real: RealPlatform;
let renter: RealRenter;
let up: InstanceBody & { jupyter_url: string; open_url: string; access_token: string };

beforeAll(async () => {
  real = await RealPlatform.start({
    agentEnv: { GPURENT_AGENT_METRICS_ADDRESS: METRICS },
  });
  renter = await RealRenter.on(real, {
    image: DEBIAN_IMAGE,
    mode: ['ssh', 'jupyter'],
    command: ['sh', '-c', 'python3 /srv/app.py 8888 8000 9000'],
    ports: [
      { port: 8000, open_button: true, label: 'App' },
      { port: 9000, guard: 'bearer' },
    ],
  });
  const { id } = await renter.deploy();
  await statusIs(renter.api, id, 'running', LONG_MS);
  up = await eventually('the links', () => withLinks(id), LONG_MS);
});
afterAll(() => real.stop());

async function withLinks(id: string): Promise<typeof up | false> {
  const instance = await renter.api.get<typeof up>(`/v1/instances/${id}`);
  return Boolean(instance.jupyter_url && instance.open_url) && instance;
}

interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

function visit(url: string, headers: Record<string, string> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { headers, agent: false }, (response) => {
      let text = '';
      response.on('data', (chunk) => (text += String(chunk)));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
    });
    outgoing.on('error', reject);
    outgoing.end();
  });
}

function without(url: string, token?: string): string {
  const bare = new URL(url);
  bare.searchParams.delete('token');
  if (token !== undefined) bare.searchParams.set('token', token);
  return bare.href;
}

function speak(url: string, headers: Record<string, string> = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url.replace('http', 'ws'), { headers });
    socket.on('error', reject);
    socket.on('open', () => socket.send('hello'));
    socket.on('message', (data) => {
      socket.close();
      resolve((data as Buffer).toString());
    });
  });
}

describe.each([
  ['JupyterLab', 'jupyter_url', '/lab'],
  ['the app behind the open button', 'open_url', '/'],
] as const)('%s', (_, link, path) => {
  it('carries the instance’s token in its link, and answers to it', async () => {
    expect(new URL(up[link]).searchParams.get('token')).toBe(up.access_token);
    expect(new URL(up[link]).pathname).toBe(path);
    expect(await visit(up[link])).toMatchObject({
      status: 200,
      text: expect.stringContaining(`path ${path}`) as string,
    });
  });

  it('is shut to a wrong token, and to none', async () => {
    expect((await visit(without(up[link]))).status).toBe(401);
    expect((await visit(without(up[link], 'beef'.repeat(12)))).status).toBe(401);
    await expect(speak(without(up[link], 'beef'))).rejects.toThrow(/401/);
  });

  it('lets a browser go on by its cookie, with WebSockets', async () => {
    const cookie = (await visit(up[link])).headers['set-cookie']?.[0]?.split(';')[0] ?? '';
    const origin = new URL(up[link]).origin;
    const page = `${origin}/page`;
    expect(await visit(page, { cookie })).toMatchObject({
      status: 200,
      text: expect.stringContaining('/page') as string,
    });
    expect(await speak(`${origin}/socket`, { cookie, origin })).toBe('hello');
    await expect(speak(`${origin}/socket`, { cookie, origin: 'http://elsewhere.example' })).rejects.toThrow(/401/);
  });
});

it('a port that guards itself is published as it is, where the workload says', async () => {
  const port = await renter.ssh(up, 'echo $PUBLIC_TCP_PORT_9000');
  expect(await visit(`http://127.0.0.1:${port}/any`)).toMatchObject({ status: 200, text: 'port 9000 path /any' });
});

/** What the agent's own metrics say of it. */
async function metricOf(name: string): Promise<number> {
  const text = await (await fetch(`http://${METRICS}/metrics`)).text();
  return Number(new RegExp(`^${name}(?:{.*})? (.*)$`, 'm').exec(text)?.[1]);
}

it('odd visits reach no process of the agent, and its heartbeats stay on time', async () => {
  const { port, search } = new URL(up.open_url);
  const startedAt = await metricOf('process_start_time_seconds');
  for (let visited = 0; visited < VISITS; visited++) {
    const said = ODD[visited % ODD.length]?.replace(' / ', ` /${search} `) ?? '';
    await new Promise<void>((resolve) => {
      const socket = connect({ host: '127.0.0.1', port: Number(port) }, () => socket.end(`${said}\r\n\r\n`));
      // Whatever it says, or that it closes, is an answer.
      socket.once('data', () => socket.destroy());
      socket.on('error', () => undefined).on('close', () => resolve());
    });
  }
  const lateMs = (await metricOf('nodejs_eventloop_lag_max_seconds')) * 1_000;
  console.log(`${VISITS} odd visits: the agent was late by ${lateMs.toFixed(0)} ms at most`);
  expect(await metricOf('process_start_time_seconds')).toBe(startedAt);
  expect(await metricOf('gpurent_agent_connected')).toBe(1);
  expect((await visit(up.open_url)).status).toBe(200);
});

it('an agent that starts again opens the doors again, and a destroyed instance has none', async () => {
  await real.killAgent();
  // Without systemd, the access proxy ends with its agent.
  await eventually('its end', () =>
    visit(up.open_url).then(
      () => false,
      (error: unknown) => String(error).includes('ECONNREFUSED'),
    ),
  );
  await real.startAgent();
  await eventually('the app', async () => (await visit(up.open_url).catch(() => undefined))?.status === 200, LONG_MS);
  await renter.api.post(`/v1/instances/${up.id}/stop`);
  expect(await statusIs(renter.api, up.id, 'stopped', LONG_MS)).toMatchObject({ jupyter_url: null, open_url: null });
  await expect(visit(up.open_url)).rejects.toThrow(/ECONNREFUSED/);
  await renter.start(up.id);
  await statusIs(renter.api, up.id, 'running', LONG_MS);
  const again = await eventually('the links', () => withLinks(up.id), LONG_MS);
  expect(again.open_url).toBe(up.open_url);
  await renter.destroy(up.id);
  await expect(visit(up.open_url)).rejects.toThrow(/ECONNREFUSED/);
});
