import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { request } from 'node:https';
import { createHash } from 'node:crypto';
import { connect as connectPlain } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseConfig } from '../../agent/config.js';
import { hostChecks } from '../../agent/doctor/host-checks.js';
import type { ProxyClient } from '../../agent/proxy/client.js';
import { silentLogger } from '../../shared/logger.js';
import { ServerIdentity, fromFiles, type KeyAndCertificate } from '../../shared/network/server-identity.js';
import { eventually } from '../../scripts/eventually.js';
import { freePort, listen, startProxy } from '../harness/proxy.js';
import { certificateFor } from '../harness/certificate.js';
import { ManualClock } from '../harness/manual-clock.js';

const TOKEN = 'f00d'.repeat(12);
const HOST = '127.0.0.1';
const NAME = 'gpu1.example.com';
const folder = mkdtempSync(join(tmpdir(), 'gpurent-tls-'));
const files = { certificate: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };

let identity: ServerIdentity;
let proxy: ProxyClient;
let app: Server;
let hostPort: number;
let other: number;
let seen: IncomingMessage;

beforeAll(async () => {
  app = createServer((incoming, response) => {
    seen = incoming;
    response.end('the app');
  });
  const planted = ['__Host-gpurent=ses_1; Path=/; Secure', `gpurent_1=2`, 'app=1'].map(
    (each) => `Set-Cookie: ${each}\r\n`,
  );
  const upgraded = `HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${planted.join('')}\r\n`;
  app.on('upgrade', (_, socket) => socket.end(upgraded));
  const port = await listen(app);
  [hostPort, other] = [await freePort(), await freePort()];
  await write();
  identity = await ServerIdentity.open(fromFiles(files), new ManualClock(), silentLogger);
  proxy = startProxy(identity);
  const tokenHash = createHash('sha256').update(TOKEN).digest('hex');
  await proxy.set('app', [{ hostPort, tokenHash, target: { host: HOST, port } }]);
});
afterAll(() => {
  identity.close();
  proxy.stop();
  app.close();
  rmSync(folder, { recursive: true, force: true });
});

async function write(): Promise<KeyAndCertificate> {
  const made = await certificateFor(NAME);
  writeFileSync(files.certificate, made.certificate);
  writeFileSync(files.key, made.key);
  return made;
}

function visit(path: string, ca: string): Promise<{ status: number; cookies: string[] }> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: HOST, port: hostPort, path, ca, servername: NAME, agent: false }, (response) => {
      response.resume();
      const { statusCode = 0, headers } = response;
      response.on('end', () => resolve({ status: statusCode, cookies: headers['set-cookie'] ?? [] }));
    });
    asked.on('error', reject);
    asked.end();
  });
}

function check(settings: Record<string, string>) {
  const config = parseConfig({
    GPURENT_AGENT_TLS_CERTIFICATE_FILE: files.certificate,
    GPURENT_AGENT_TLS_KEY_FILE: files.key,
    ...settings,
  });
  return hostChecks(config)
    .find(({ name }) => name === 'guarded ports')
    ?.look();
}

it('a guarded port speaks TLS where there is a certificate, and keeps its cookie to that', async () => {
  expect(proxy.scheme).toBe('https');
  const { certificate } = identity.current;
  const { status, cookies } = await visit(`/?token=${TOKEN}`, certificate);
  expect(status).toBe(200);
  expect(cookies[0]).toMatch(/; Secure$/);
  expect(seen.headers['x-forwarded-proto']).toBe('https');
  expect((await visit('/', certificate)).status).toBe(401);
  await expect(fetch(`http://${HOST}:${hostPort}/?token=${TOKEN}`)).rejects.toThrow();
});

it('passes on no cookie of a control plane that a workload sets by its answer to a WebSocket', async () => {
  const asked = request({
    host: HOST,
    port: hostPort,
    path: `/?token=${TOKEN}`,
    ca: identity.current.certificate,
    servername: NAME,
    agent: false,
    headers: {
      connection: 'Upgrade',
      upgrade: 'websocket',
    },
  });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    asked.on('upgrade', (answer, socket) => {
      socket.destroy();
      resolve(answer);
    });
    asked.on('error', reject).end();
  });
  expect((await answered).headers).toMatchObject({ upgrade: 'websocket', 'set-cookie': ['app=1'] });
});

it('shows a newer certificate without being closed, and none that cannot be used', async () => {
  const before = identity.current.certificate;
  const visitor = connect({ host: HOST, port: hostPort, ca: before, servername: NAME });
  await new Promise((resolve) => visitor.once('secureConnect', resolve));
  writeFileSync(files.certificate, 'half a fi');
  await identity.refresh();
  expect((await visit('/', before)).status).toBe(401);
  const { certificate } = await write();
  await identity.refresh();
  await eventually('the newer certificate', () =>
    visit('/', certificate).then(
      ({ status }) => status === 401,
      () => false,
    ),
  );
  await expect(visit('/', before)).rejects.toThrow();
  expect(visitor.destroyed).toBe(false);
  visitor.destroy();
});

it('that is closed is closed to those, too, who have not said a word yet', async () => {
  const open = { hostPort: other, tokenHash: 'none', target: { host: HOST, port: 1 } };
  await proxy.set('open', [open]);
  const silent = connectPlain({ host: HOST, port: other });
  silent.on('error', () => {});
  await new Promise((resolve) => silent.once('connect', resolve));
  const closed = new Promise((resolve) => silent.once('close', resolve));
  await proxy.set('open', []);
  await closed;
});

it('the doctor says how links to this host are protected', async () => {
  expect(await check({ GPURENT_AGENT_TLS_CERTIFICATE_FILE: '', GPURENT_AGENT_TLS_KEY_FILE: '' })).toMatchObject([
    { verdict: 'doubtful', what: expect.stringMatching(/plain HTTP/) as string },
  ]);
  expect(await check({ GPURENT_AGENT_PUBLIC_ADDRESS: NAME })).toMatchObject([{ verdict: 'good' }]);
  expect(await check({ GPURENT_AGENT_PUBLIC_ADDRESS: '203.0.113.1' })).toMatchObject([
    { verdict: 'bad', what: 'their certificate is not for 203.0.113.1' },
  ]);
  expect(await check({ GPURENT_AGENT_PUBLIC_ADDRESS: 'gpu2.example.com' })).toMatchObject([
    { verdict: 'bad', what: 'their certificate is not for gpu2.example.com' },
  ]);
  const foreign = join(folder, 'foreign.pem');
  writeFileSync(foreign, (await certificateFor(NAME)).key);
  expect(await check({ GPURENT_AGENT_PUBLIC_ADDRESS: NAME, GPURENT_AGENT_TLS_KEY_FILE: foreign })).toMatchObject([
    { verdict: 'bad', what: expect.stringMatching(/key values mismatch/) as string },
  ]);
  const missing = join(folder, 'nothing.pem');
  expect(await check({ GPURENT_AGENT_TLS_KEY_FILE: missing })).toMatchObject([
    { verdict: 'bad', what: expect.stringContaining(missing) as string },
  ]);
  expect(() => check({ GPURENT_AGENT_TLS_KEY_FILE: '' })).toThrow(/give both/);
});
