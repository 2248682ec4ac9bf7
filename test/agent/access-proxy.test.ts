import { createServer, request, type IncomingMessage, type RequestOptions, type Server } from 'node:http';
import { createHash } from 'node:crypto';
import { connect, createServer as createRawServer, type AddressInfo } from 'node:net';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import type { ProxyClient } from '../../agent/proxy/client.js';
import type { GuardedPort } from '../../agent/proxy/state.js';
import { eventually } from '../../scripts/eventually.js';
import { answering, freePort, listen, say, startProxy } from '../harness/proxy.js';
import { SEED } from '../harness/test-seed.js';

const TOKEN = 'f00d'.repeat(12);
const HOST = '127.0.0.1';
const VISITS = Number(process.env['TEST_FUZZ_REQUESTS'] ?? 300);

let proxy: ProxyClient;
let app: Server;
let seen: IncomingMessage[];
let sendRest: () => void;
let guarded: GuardedPort;

beforeAll(async () => {
  proxy = startProxy();
  app = createServer((incoming, response) => {
    seen.push(incoming);
    if (incoming.url?.startsWith('/stream')) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: first\n\n');
      sendRest = () => response.end('data: last\n\n');
      return;
    }
    response.setHeader('set-cookie', 'app=1');
    if (incoming.url?.startsWith('/page')) response.setHeader('content-type', 'text/html; charset=utf-8');
    if (incoming.url?.startsWith('/page/missing')) response.statusCode = 404;
    incoming.pipe(response);
  });
  const sockets = new WebSocketServer({ server: app });
  sockets.on('connection', (socket) =>
    socket.on('message', (data) => socket.send(`echo ${(data as Buffer).toString()}`)),
  );
  const port = await listen(app);
  guarded = {
    hostPort: await freePort(),
    tokenHash: createHash('sha256').update(TOKEN).digest('hex'),
    target: { host: HOST, port },
  };
  await proxy.set('guarded', [guarded]);
  seen = [];
});
afterAll(() => {
  proxy.stop();
  app.close();
  app.closeAllConnections();
});

interface Answer {
  status: number;
  headers: IncomingMessage['headers'];
  text: string;
}

function ask(
  path: string,
  headers: Record<string, string> = {},
  options: RequestOptions = {},
  body = '',
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { host: HOST, port: guarded.hostPort, path, headers, agent: false, ...options },
      (response) => {
        let text = '';
        response.on('data', (chunk) => (text += String(chunk)));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
      },
    );
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

const cookieOf = ({ headers }: Answer) => headers['set-cookie']?.find((cookie) => cookie.startsWith('gpurent_')) ?? '';
const enter = async () => cookieOf(await ask(`/?token=${TOKEN}`)).split(';')[0] ?? '';

/** What a browser says of the request that opens a page, and of one that a page of another renter at this host name makes. */
const opening = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
const embedded = (dest: string) => ({
  'sec-fetch-site': 'same-site',
  'sec-fetch-mode': 'no-cors',
  'sec-fetch-dest': dest,
});

describe('A guarded port', () => {
  it.each([
    ['nothing', '/', {}],
    ['a wrong token', '/?token=beef', {}],
    ['a wrong key', '/', { authorization: 'Bearer beef' }],
    ['a made-up cookie', '/', { cookie: 'gpurent_1=1' }],
    ['an address that is none', 'http://[', {}],
    ['an address of somewhere else', `//elsewhere/?token=beef`, {}],
    ['an address of nowhere', '//', {}],
    ['a cookie that is no text', '/', { cookie: `gpurent_${'0'.repeat(5)}=${'a'.repeat(63)}é` }],
  ])('lets nobody in with %s', async (_, path, headers) => {
    seen = [];
    expect((await ask(path, headers)).status).toBe(401);
    expect(seen).toEqual([]);
  });

  it('lets in who has the token, and then by a cookie, without showing that to the workload', async () => {
    const first = await ask(`/?token=${TOKEN}`);
    expect(first.status).toBe(200);
    expect(first.headers['set-cookie']).toContain('app=1');
    expect(cookieOf(first)).toMatch(/; HttpOnly; SameSite=Lax$/);
    const cookie = await enter();
    expect(cookie).not.toContain(TOKEN);
    seen = [];
    const again = await ask('/page', { cookie: `other=1; ${cookie}` }, { method: 'POST' }, 'what is sent');
    expect(again).toMatchObject({ status: 200, text: 'what is sent' });
    expect(seen[0]?.headers.cookie).toBe('other=1');
    expect(seen[0]?.headers['x-forwarded-for']).toBe(HOST);
  });

  it('keeps the cookies of ports and of a control plane at the same name from the workload', async () => {
    const cookie = await enter();
    seen = [];
    const planted = '=gpurent_1=2; gpurent_1; GPURENT_1=2; gpurent=1; __Host-gpurent=ses_1; __Host-gpurent-form=2';
    const session = `${planted}; __Host-gpurent =3; a=__Host-gpurent=4; gpurent_1=; ${cookie}`;
    expect((await ask('/', { cookie: session })).status).toBe(200);
    expect(seen[0]?.headers.cookie).toBe('a=__Host-gpurent=4');
  });

  it('lets in who has a valid cookie among others of the same name', async () => {
    const cookie = await enter();
    const [name] = cookie.split('=');
    for (const pairs of [`${name}=1; ${cookie}; ${name}=2`, `${name}; =${name}=1; ${cookie}`])
      expect((await ask('/', { cookie: pairs })).status).toBe(200);
  });

  it('says so to a browser that sends more cookies than it accepts', async () => {
    const tooMany = await ask('/', { cookie: `a=${'1'.repeat(40_000)}` });
    expect(tooMany.status).toBe(431);
    expect(tooMany.text).toMatch(/delete the cookies of this name/);
    expect((await ask('/', { cookie: `a=${'1'.repeat(10_000)}; ${await enter()}` })).status).toBe(200);
  });

  it('takes the token as a key, for scripts', async () => {
    expect((await ask('/', { authorization: `Bearer ${TOKEN}` })).status).toBe(200);
    expect(seen.at(-1)?.headers.authorization).toBe(`Bearer ${TOKEN}`);
  });

  it('takes a cookie only from where it was given, and not from a page of somebody else', async () => {
    const cookie = await enter();
    const host = `${HOST}:${guarded.hostPort}`;
    expect((await ask('/', { cookie, origin: `http://${host}`, host })).status).toBe(200);
    expect((await ask('/', { cookie, origin: `http://${HOST}:1`, host })).status).toBe(401);
    expect((await ask('/', { cookie, origin: 'null', host })).status).toBe(401);
    expect((await ask('/', { cookie }, { localAddress: '127.0.0.2' })).status).toBe(401);
  });

  it.each([
    ['from its own page', 200, 'GET', { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'no-cors' }],
    ['posted by its own page', 200, 'POST', { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' }],
    ['that opens it, from a bookmark', 200, 'GET', { 'sec-fetch-site': 'none', ...opening }],
    ['that opens it, by a link of another page', 200, 'GET', { 'sec-fetch-site': 'cross-site', ...opening }],
    ['for a script in a neighbour’s page', 401, 'GET', embedded('script')],
    ['for an image in a neighbour’s page', 401, 'GET', embedded('image')],
    ['for a frame in a neighbour’s page', 401, 'GET', { ...embedded('iframe'), 'sec-fetch-mode': 'navigate' }],
    ['for a form in a neighbour’s page', 401, 'POST', { 'sec-fetch-site': 'same-site', ...opening }],
    ['that says two things', 401, 'GET', { 'sec-fetch-site': 'same-origin, same-site' }],
    ['of a browser that says nothing', 200, 'GET', {}],
  ])('takes or refuses the cookie in a request %s', async (_, status, method, headers) => {
    const cookie = await enter();
    expect((await ask('/', { cookie, ...headers }, { method })).status).toBe(status);
  });

  it('takes the token out of the address bar where a page is opened, after the workload has seen it', async () => {
    const page = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
    seen = [];
    const opened = await ask(`/page?a=%2F%20b&token=${TOKEN}&c&token=other&a=2`, page);
    expect(opened).toMatchObject({
      status: 302,
      headers: { location: '/page?a=%2F%20b&c&token=other&a=2', 'cache-control': 'no-store' },
    });
    expect(opened.headers['set-cookie']).toEqual(['app=1', cookieOf(opened)]);
    expect(seen.map(({ url }) => url)).toEqual([`/page?a=%2F%20b&token=${TOKEN}&c&token=other&a=2`]);
    const cookie = cookieOf(opened).split(';')[0] ?? '';
    expect((await ask(opened.headers.location ?? '', { ...page, cookie })).status).toBe(200);
    expect((await ask(`/page?token=${TOKEN}`, { ...page, ...opening })).headers.location).toBe('/page');
  });

  it.each([
    ['a script', 200, `/page?token=${TOKEN}`, 'GET', { accept: '*/*' }],
    ['a form', 200, `/page?token=${TOKEN}`, 'POST', { accept: 'text/html' }],
    ['a frame', 200, `/page?token=${TOKEN}`, 'GET', { accept: 'text/html', ...embedded('iframe') }],
    ['a file', 200, `/file?token=${TOKEN}`, 'GET', { accept: 'text/html' }],
    ['a page that is missing', 404, `/page/missing?token=${TOKEN}`, 'GET', { accept: 'text/html' }],
    ['a path that leads to another host', 200, `//page/?token=${TOKEN}`, 'GET', { accept: 'text/html' }],
    ['another path that does', 200, `/\\page/?token=${TOKEN}`, 'GET', { accept: 'text/html' }],
  ])('does not send %s elsewhere', async (_, status, path, method, headers) => {
    const answer = await ask(path, headers, { method });
    expect(answer.status).toBe(status);
    expect(answer.headers.location).toBeUndefined();
    expect(cookieOf(answer)).not.toBe('');
  });

  it('passes on what is streamed as it comes', async () => {
    const cookie = await enter();
    let text = '';
    const outgoing = request({ host: HOST, port: guarded.hostPort, path: '/stream', headers: { cookie } }, (response) =>
      response.on('data', (chunk) => (text += String(chunk))),
    );
    outgoing.end();
    await eventually('the first part', () => text === 'data: first\n\n');
    sendRest();
    await eventually('the rest', () => text.endsWith('data: last\n\n'));
  });

  it('lets WebSockets through that have the token or the cookie, and no others', async () => {
    const url = `ws://${HOST}:${guarded.hostPort}/socket`;
    const talk = (address: string, headers: Record<string, string> = {}) =>
      new Promise<string>((resolve, reject) => {
        const socket = new WebSocket(address, { headers });
        socket.on('error', reject);
        socket.on('open', () => socket.send('hello'));
        socket.on('message', (data) => {
          socket.close();
          resolve((data as Buffer).toString());
        });
      });
    const cookie = await enter();
    expect(await talk(`${url}?token=${TOKEN}`)).toBe('echo hello');
    expect(await talk(url, { cookie })).toBe('echo hello');
    await expect(talk(url)).rejects.toThrow(/401/);
    await expect(talk(url, { cookie, origin: 'http://elsewhere.example' })).rejects.toThrow(/401/);
  });

  it('says so while nothing answers behind it, and is closed when its workload is down', async () => {
    const silent = { ...guarded, hostPort: await freePort(), target: { host: HOST, port: await freePort() } };
    await proxy.set('silent', [silent]);
    const options = { port: silent.hostPort };
    expect((await ask(`/?token=${TOKEN}`, {}, options)).status).toBe(502);
    expect((await ask('/', {}, options)).status).toBe(401);
    await proxy.set('silent', []);
    await expect(ask('/', {}, options)).rejects.toThrow(/ECONNREFUSED/);
    expect((await ask(`/?token=${TOKEN}`)).status).toBe(200);
  });

  it('passes on no answer that cannot be said, and goes on', async () => {
    for (const line of ['200 O\u0001K', '099 X']) {
      const odd = createRawServer((socket) => {
        socket.on('error', () => {});
        socket.once('data', () => socket.end(`HTTP/1.1 ${line}\r\nContent-Length: 2\r\n\r\nhi`));
      });
      const port = await new Promise<number>((resolve) =>
        odd.listen(0, HOST, () => resolve((odd.address() as AddressInfo).port)),
      );
      const before = { ...guarded, hostPort: await freePort(), target: { host: HOST, port } };
      await proxy.set('before', [before]);
      const { status } = await ask(`/?token=${TOKEN}`, {}, { port: before.hostPort });
      expect([200, 502]).toContain(status);
      await proxy.set('before', []);
      odd.close();
    }
    expect((await ask(`/?token=${TOKEN}`)).status).toBe(200);
  });

  it('says itself where a visitor comes from', async () => {
    seen = [];
    const lies = {
      'x-forwarded-for': '10.0.0.1',
      'x-forwarded-host': 'evil',
      forwarded: 'for=10.0.0.1',
      'x-real-ip': '::1',
    };
    await ask(`/?token=${TOKEN}`, lies);
    expect(seen[0]?.headers['x-forwarded-for']).toBe(HOST);
    expect(JSON.stringify(seen[0]?.headers)).not.toMatch(/10\.0\.0\.1|evil|real-ip|"forwarded"/);
  });

  it('lets the renter in past connections that say nothing', async () => {
    const silent = Array.from({ length: 700 }, () =>
      connect({ host: HOST, port: guarded.hostPort }).on('error', () => undefined),
    );
    await eventually('the crowd', () => silent.every(({ connecting }) => !connecting));
    expect((await ask(`/?token=${TOKEN}`)).status).toBe(200);
    for (const socket of silent) socket.destroy();
  });

  it('survives whatever visitors and workloads say', async () => {
    const line = fc.stringMatching(/^[\x20-\x7e]{0,30}$/);
    const header = fc.oneof(
      fc.constantFrom(
        'Trailer: X',
        'Transfer-Encoding: chunked',
        'Transfer-Encoding: gzip',
        'Connection: upgrade',
        'Upgrade: x',
      ),
      fc.constantFrom(
        'Content-Length: 5',
        'Content-Length: -1',
        'Connection: close',
        'Keep-Alive: timeout=-1',
        'Set-Cookie: a',
      ),
      fc.tuple(line, line).map((pair) => pair.join(': ')),
    );
    const headers = fc.array(header, { maxLength: 5 }).map((lines) => lines.map((one) => `${one}\r\n`).join(''));
    const status = fc.constantFrom(
      'HTTP/1.1 200 OK',
      'HTTP/1.0 200',
      'HTTP/1.1 101 X',
      'HTTP/1.1 100 C',
      'HTTP/1.1 304 N',
      'HTTP/9 z',
    );
    const method = fc.constantFrom('GET', 'HEAD', 'POST', 'CONNECT', 'TRACE', 'BREW');
    const version = fc.constantFrom('1.0', '1.1', '2.0');
    const visits = fc.sample(fc.tuple(status, headers, line, method, version, headers), {
      numRuns: VISITS,
      seed: SEED,
    });
    let answer = '';
    const port = await answering(() => answer);
    const odd = { ...guarded, hostPort: await freePort(), target: { host: HOST, port } };
    await proxy.set('odd', [odd]);
    const lateness = monitorEventLoopDelay();
    lateness.enable();
    for (const [said, sent, body, verb, spoken, asked] of visits) {
      answer = `${said}\r\n${sent}\r\n${body}`;
      await say(odd.hostPort, `${verb} /?token=${TOKEN} HTTP/${spoken}\r\nHost: x\r\n${asked}\r\n`);
    }
    lateness.disable();
    process.stdout.write(
      `after ${VISITS} odd visits a timer was late by at most ${Math.round(lateness.max / 1e6)} ms\n`,
    );
    await proxy.set('odd', []);
    expect((await ask(`/?token=${TOKEN}`)).status).toBe(200);
  });

  it('ends the WebSockets that it has let through when it closes', async () => {
    const brief = { ...guarded, hostPort: await freePort() };
    await proxy.set('brief', [brief]);
    const socket = new WebSocket(`ws://${HOST}:${brief.hostPort}/?token=${TOKEN}`);
    await new Promise((resolve) => socket.once('open', resolve));
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => {});
    await proxy.set('brief', []);
    await closed;
  });

  it('of a workload without a token lets nobody in', async () => {
    const sealed = { ...guarded, hostPort: await freePort(), tokenHash: '' };
    await proxy.set('sealed', [sealed]);
    expect((await ask('/?token=', {}, { port: sealed.hostPort })).status).toBe(401);
    await proxy.set('sealed', []);
  });
});
