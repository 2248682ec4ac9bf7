import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import type { ProxyClient } from '../../agent/proxy/client.js';
import { silentLogger } from '../../shared/logger.js';
import { ServerIdentity } from '../../shared/network/server-identity.js';
import { certificateFor } from '../harness/certificate.js';
import { openContext, startChromium } from '../harness/chromium.js';
import { ManualClock } from '../harness/manual-clock.js';
import { freePort, listen, startProxy } from '../harness/proxy.js';

/** Not loopback, to which browsers send `Sec-Fetch-Site` also by plain HTTP. */
const NAME = 'gpu1.example.com';
const TOKENS = { app: 'f00d'.repeat(12), neighbour: 'beef'.repeat(12) };
type Workload = keyof typeof TOKENS;
const ANSWERS: Record<string, readonly [type: string, body: string]> = {
  '/script.js': ['text/javascript', 'window.ran = true'],
  '/image': ['image/svg+xml', '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'],
};

let browser: Browser;
beforeAll(async () => {
  browser = await startChromium([`--host-resolver-rules=MAP ${NAME} 127.0.0.1`]);
});
afterAll(() => browser.close());

describe.each(['http', 'https'] as const)('By %s, a web port', (scheme) => {
  const closing: (() => unknown)[] = [];
  const origins = { app: '', neighbour: '' };
  /** What the app was asked for. */
  let seen: string[] = [];
  let proxy: ProxyClient;
  let page: Page;
  let port: number;

  beforeAll(async () => {
    const planted = () => [`gpurent_${port}=2; Path=/`, '__Host-gpurent=ses_1; Path=/; Secure', `=gpurent_${port}=2`];
    const app = createServer(({ method, url = '' }, response) => {
      seen.push(`${method} ${url}`);
      const [type, body] = ANSWERS[url] ?? ['text/html', '<h1>the app</h1>'];
      response.setHeader('content-type', type).end(body);
    });
    const neighbour = createServer((_, response) => {
      response.setHeader('set-cookie', planted()).setHeader('clear-site-data', '"cookies"');
      response.setHeader('content-type', 'text/html').end('<h1>the neighbour</h1>');
    });
    const sockets = [new WebSocketServer({ server: app }), new WebSocketServer({ server: neighbour })];
    for (const server of sockets)
      server.on('connection', (socket) => socket.on('message', () => socket.send('an answer')));
    sockets[1]?.on('headers', (headers) => headers.push(...planted().map((cookie) => `Set-Cookie: ${cookie}`)));

    proxy = startProxy(scheme === 'https' ? await madeIdentity() : undefined);
    port = await guard('app', app);
    await guard('neighbour', neighbour);
    const context = await openContext(browser, { ignoreHTTPSErrors: true });
    page = await context.newPage();
    closing.push(
      () => context.close(),
      () => proxy.stop(),
    );
  });
  afterAll(async () => {
    for (const close of closing) await close();
  });

  async function madeIdentity(): Promise<ServerIdentity> {
    const made = await certificateFor(NAME);
    const identity = await ServerIdentity.open(() => Promise.resolve(made), new ManualClock(), silentLogger);
    closing.push(() => identity.close());
    return identity;
  }

  async function guard(workload: Workload, server: Server): Promise<number> {
    const [target, hostPort] = [{ host: '127.0.0.1', port: await listen(server) }, await freePort()];
    const tokenHash = createHash('sha256').update(TOKENS[workload]).digest('hex');
    await proxy.set(workload, [{ hostPort, tokenHash, target }]);
    origins[workload] = `${scheme}://${NAME}:${hostPort}`;
    closing.push(
      () => server.close(),
      () => server.closeAllConnections(),
    );
    return hostPort;
  }

  const open = (workload: Workload) => page.goto(`${origins[workload]}/?a=1&token=${TOKENS[workload]}`);
  /** What comes of a script of the page that is shown: its value, or `refused`. */
  const run = (script: string) => page.evaluate<unknown>(`(${script}).catch(() => 'refused')`);
  const talk = (workload: Workload) =>
    run(`new Promise((resolve, reject) => {
      const socket = new WebSocket('${origins[workload].replace('http', 'ws')}/socket');
      socket.onopen = () => socket.send('hello');
      socket.onmessage = ({ data }) => resolve(data);
      socket.onerror = reject;
    })`);
  const embed = (tag: string, path: string) =>
    run(`new Promise((resolve, reject) => {
      const embedded = document.createElement('${tag}');
      embedded.onload = () => resolve('loaded');
      embedded.onerror = reject;
      embedded.src = '${origins.app}${path}';
      document.body.append(embedded);
    })`);

  it('opens by a link whose token leaves the address, and its page and WebSocket work', async () => {
    await open('app');
    expect(page.url()).toBe(`${origins.app}/?a=1`);
    expect(await page.locator('h1').textContent()).toBe('the app');
    expect(await run(`fetch('/read').then(({ status }) => status)`)).toBe(200);
    expect(await run(`fetch('/write', { method: 'POST' }).then(({ status }) => status)`)).toBe(200);
    expect(await embed('script', '/script.js')).toBe('loaded');
    expect(await talk('app')).toBe('an answer');
  });

  it('is closed to the page of a neighbour at the same name, whose visitor has its cookie', async () => {
    await open('app');
    await open('neighbour');
    expect(await page.locator('h1').textContent()).toBe('the neighbour');
    expect(await talk('neighbour')).toBe('an answer');
    seen = [];
    expect(await run(`fetch('${origins.app}/read', { credentials: 'include' })`)).toBe('refused');
    const post = `{ method: 'POST', mode: 'no-cors', credentials: 'include', body: 'a' }`;
    await run(`fetch('${origins.app}/write', ${post}).then(({ type }) => type)`);
    expect(await talk('app')).toBe('refused');
    expect(seen).toEqual([]);
    // By plain HTTP, no header of the browser tells these from those of the port's own page.
    const embedded = scheme === 'https' ? 'refused' : 'loaded';
    expect(await embed('script', '/script.js')).toBe(embedded);
    expect(await embed('img', '/image')).toBe(embedded);
    expect(seen).toHaveLength(scheme === 'https' ? 0 : 2);
  });

  it('lets its visitor in whatever cookies a neighbour sets', async () => {
    await open('app');
    const [cookie] = await page.context().cookies();
    expect(cookie?.name).toBe(`gpurent_${port}`);
    await open('neighbour');
    await run(`fetch('/again')`);
    expect(await talk('neighbour')).toBe('an answer');
    await page.evaluate(`document.cookie = 'gpurent_${port}=3; path=/'`);
    const left = (await page.context().cookies()).filter(({ name }) => name !== cookie?.name);
    expect(left.map(({ name }) => name)).toEqual([`gpurent_${new URL(origins.neighbour).port}`]);
    // A script can set one for another path, but it does not count.
    await page.evaluate(`document.cookie = 'gpurent_${port}=3; path=/page'`);
    expect((await page.goto(`${origins.app}/page`))?.status()).toBe(200);
  });
});
