import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { issuerUrlOf } from '../../control-plane/domain/identity/company.js';
import { issuerFetcher } from '../../control-plane/outbound/fetch-issuer.js';
import type { OutboundOptions } from '../../control-plane/outbound/post-webhook.js';
import { certificateFor } from '../harness/certificate.js';

let server: Server;
let port: number;
let trusted: string[];
let asked: string[];
let names: string[];

beforeAll(async () => {
  const { certificate, key } = await certificateFor('issuer.example');
  trusted = [certificate];
  server = createServer({ cert: certificate, key }, (request, response) => {
    asked.push(`${request.method} ${request.headers.host} ${request.url}`);
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"is":"an answer"}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
});
beforeEach(() => {
  [asked, names] = [[], []];
});
afterAll(() => void server.close());

function fetchFrom(issuer: string, address: string, options: Partial<OutboundOptions> = {}): Promise<Response> {
  const resolve = async (name: string) => {
    names.push(name);
    return ['127.0.0.1'];
  };
  const fetcher = issuerFetcher({ allowed: [], resolve, own: () => [], trusted, ...options });
  const asking = { method: 'GET', headers: {}, signal: new AbortController().signal };
  return fetcher(issuer, address, asking);
}

describe('a request to an issuer', () => {
  it('goes to the host that the operator has chosen, wherever it is', async () => {
    const answer = await fetchFrom(`https://issuer.example:${port}`, `https://issuer.example:${port}/keys?a=b`);
    expect([answer.status, await answer.json()]).toEqual([200, { is: 'an answer' }]);
    expect(asked).toEqual([`GET issuer.example:${port} /keys?a=b`]);
    expect(names).toEqual(['issuer.example']);
  });

  it('needs a certificate that is trusted, for this name', async () => {
    const issuer = `https://issuer.example:${port}`;
    await expect(fetchFrom(issuer, issuer, { trusted: [] })).rejects.toMatchObject({ kind: 'unreachable' });
    const other = `https://other.example:${port}`;
    await expect(fetchFrom(other, other)).rejects.toMatchObject({ kind: 'unreachable' });
    expect(asked).toEqual([]);
  });

  it('goes to another host that the issuer names only outside of forbidden networks', async () => {
    const keys = `https://issuer.example:${port}/keys`;
    await expect(fetchFrom('https://chosen.example', keys)).rejects.toThrow(
      /in a network that issuers must not lead to/,
    );
    expect(asked).toEqual([]);
    expect((await fetchFrom('https://chosen.example', keys, { allowed: ['127.0.0.0/8'] })).status).toBe(200);
  });

  it.each([
    ['http://issuer.example/keys', 'https://issuer.example'],
    ['http://127.0.0.1/keys', 'https://issuer.example'],
    ['http://issuer.example/keys', 'http://127.0.0.1'],
    ['file:///etc/passwd', 'https://issuer.example'],
    ['http://127.0.0.2/keys', 'http://127.0.0.1'],
  ])('to %s is not sent for %s', async (address, issuer) => {
    await expect(fetchFrom(issuer, address)).rejects.toMatchObject({ kind: 'unreachable' });
  });

  it('to a name without an address fails', async () => {
    const nowhere = fetchFrom('https://issuer.example', 'https://issuer.example', { resolve: async () => [] });
    await expect(nowhere).rejects.toThrow('issuer.example has no address');
  });
});

it.each([
  ['https://issuer.example/', 'https://issuer.example'],
  ['https://ISSUER.example', 'https://issuer.example'],
  ['https://issuer.example/realms/a/', 'https://issuer.example/realms/a/'],
  ['https://issuer.example:443/x', 'https://issuer.example/x'],
  ['http://localhost:1/', 'http://localhost:1'],
  ['http://issuer.example', undefined],
  ['https://issuer.example#a', undefined],
  ['', undefined],
])('the address %s of an issuer is kept as %s', (given, kept) => expect(issuerUrlOf(given)).toBe(kept));
