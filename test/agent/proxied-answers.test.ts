import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ProxyClient } from '../../agent/proxy/client.js';
import { answering, freePort, say, startProxy } from '../harness/proxy.js';

const TOKEN = 'f00d'.repeat(12);
const HOST = '127.0.0.1';
const tokenHash = createHash('sha256').update(TOKEN).digest('hex');
/** Cookies of a control plane and of ports at the same name, as browsers would take them. */
const PLANTED = [
  '__Host-gpurent=ses_1; Path=/; Secure',
  ' __host-gpurent-form=1; Path=/; Secure',
  '__Secure-gpurent_1=2',
  'gpurent_1=2; Path=/',
  '\tgpurent_1\t=2; Path=/lab',
  'GPURENT_1=2',
  '"gpurent_1"=2',
  '=gpurent_1=2',
  ' = gpurent_1=2',
  'gpurent_1',
  '=__Host-gpurent=ses_1',
  'gpurent=1; Max-Age=0',
];
/** Cookies of its own. */
const KEPT = ['app=1; Path=/; HttpOnly', 'a=gpurent_1=2', '_gpurentx=1', 'gpurents=1', 'session="gpurent_1=2"'];
/** Headers with an effect beyond the port, or after the instance. */
const BEYOND = {
  'Alt-Svc': 'h2=":8443"; persist=1',
  'Clear-Site-Data': '"cookies"',
  'Expect-CT': 'max-age=9, enforce',
  NEL: '{"report_to":"a","max_age":9,"include_subdomains":true}',
  'Public-Key-Pins': 'max-age=9; includeSubDomains',
  'Public-Key-Pins-Report-Only': 'max-age=9; report-uri="https://elsewhere.example"',
  'Report-To': '{"group":"a","max_age":9,"endpoints":[{"url":"https://elsewhere.example"}]}',
  'Sec-Session-Registration': '(ES256);path="/a"',
  'Secure-Session-Registration': '(ES256);path="/a"',
  'Sec-Session-Challenge': '"a"',
  'Secure-Session-Challenge': '"a"',
  'Strict-Transport-Security': 'max-age=9; includeSubDomains',
};
/** Headers with an effect on the port alone. */
const OWN = {
  'Content-Security-Policy': "default-src 'self'",
  'Accept-CH': 'DPR',
  'Origin-Agent-Cluster': '?0',
  'Reporting-Endpoints': 'a="/reports"',
  'Service-Worker-Allowed': '/',
  'Set-Login': 'logged-in',
};
const linesOf = (headers: Record<string, string>) =>
  Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
const PLANTING = [
  ...[...PLANTED, ...KEPT].map((cookie) => `set-cookie: ${cookie}\r\n`),
  ...linesOf(BEYOND),
  ...linesOf(OWN),
].join('');

let proxy: ProxyClient;
beforeAll(() => {
  proxy = startProxy();
});
afterAll(() => proxy.stop());

/** Guards the port of a workload that gives this to whoever speaks to it, until the next one. */
async function guarding(words: string, use: (hostPort: number) => Promise<void>): Promise<void> {
  const target = { host: HOST, port: await answering(words) };
  const hostPort = await freePort();
  await proxy.set('one', [{ hostPort, tokenHash, target }]);
  await use(hostPort);
}

const plain = 'Connection: close\r\n';
const upgrading = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';

describe('An answer behind a guarded port', () => {
  it.each([
    ['an answer', 200, plain, `HTTP/1.1 200 OK\r\n${PLANTING}Content-Length: 2\r\n\r\nhi`],
    ['an error', 500, plain, `HTTP/1.1 500 No\r\n${PLANTING}Content-Length: 2\r\n\r\nhi`],
    ['a WebSocket', 101, upgrading, `HTTP/1.1 101 Yes\r\n${upgrading}${PLANTING}\r\nhi`],
    ['a refused WebSocket', 403, upgrading, `HTTP/1.1 403 No\r\n${PLANTING}Content-Length: 2\r\n\r\nhi`],
  ])('passes on nothing that acts on other ports of the name in %s', async (_, status, asked, answer) => {
    await guarding(answer, async (hostPort) => {
      const heard = await say(hostPort, `GET /?token=${TOKEN} HTTP/1.1\r\nHost: x\r\n${asked}\r\n`, 10_000);
      const [head = '', body] = heard.split('\r\n\r\n');
      const lines = head.split('\r\n');
      expect(lines[0]).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      expect(body).toContain('hi');
      const valuesOf = (name: string) =>
        lines
          .filter((line) => line.toLowerCase().startsWith(`${name.toLowerCase()}:`))
          .map((line) => line.replace(/^[^:]*: /, ''));
      expect(valuesOf('set-cookie').filter((cookie) => !cookie.startsWith(`gpurent_${hostPort}=`))).toEqual(KEPT);
      for (const name of Object.keys(BEYOND)) expect([name, ...valuesOf(name)]).toEqual([name]);
      for (const [name, value] of Object.entries(OWN)) expect(valuesOf(name)).toEqual([value]);
    });
  });

  it('passes on neither answers before the answer nor trailers after it', async () => {
    const early = `HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n${PLANTING}\r\n`;
    const chunked = `Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n${PLANTING}\r\n`;
    for (const [asked, status] of [
      [plain, '200 OK'],
      [upgrading, '403 No'],
    ]) {
      await guarding(`${early}HTTP/1.1 ${status}\r\n${chunked}`, async (hostPort) => {
        const heard = await say(
          hostPort,
          `GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n${asked}\r\n`,
          10_000,
        );
        expect(heard).toMatch(new RegExp(`^HTTP/1.1 ${status}\r\n`));
        expect(heard).toContain('\r\n2\r\nhi\r\n0\r\n');
        expect(heard).not.toMatch(/HTTP\/1.1 103|preload|cookie|alt-svc|accept-ch/i);
      });
    }
  });

  it.each([
    ['goes on with', 'X-A: 1\r\n Set-Cookie: gpurent_1=2\r\n'],
    ['has in it', 'X-A: 1\rSet-Cookie: gpurent_1=2\r\n'],
    ['has after a line feed', 'X-A: 1\nSet-Cookie: gpurent_1=2\n'],
  ])('passes on no cookie that another line %s', async (_, lines) => {
    for (const asked of [plain, upgrading]) {
      await guarding(`HTTP/1.1 403 No\r\n${lines}Content-Length: 2\r\n\r\nhi`, async (hostPort) => {
        const heard = await say(hostPort, `GET /?token=${TOKEN} HTTP/1.1\r\nHost: x\r\n${asked}\r\n`, 10_000);
        expect(heard).not.toMatch(/[\r\n]\s*set-cookie: gpurent_1=/i);
      });
    }
  });

  it('passes on no trailer, which a visitor of HTTP/1.0 cannot be told of', async () => {
    await guarding('HTTP/1.1 200 OK\r\nTrailer: X-End\r\nContent-Length: 2\r\n\r\nhi', async (hostPort) => {
      const heard = await say(hostPort, `GET /?token=${TOKEN} HTTP/1.0\r\n\r\n`, 10_000);
      expect(heard).toMatch(/^HTTP\/1\.1 200 /);
      expect(heard).not.toMatch(/^trailer:/im);
    });
  });
});
