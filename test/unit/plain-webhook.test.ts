import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { webhookPoster, type OutboundOptions } from '../../control-plane/outbound/post-webhook.js';
import { askingSystem } from '../../control-plane/outbound/resolve-name.js';

const ANYWHERE = ['0.0.0.0/0', '::/0'];
let server: Server;
let port: number;
const received: string[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    received.push(`${request.method} ${request.url} ${request.headers.host}`);
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

const post = (url: string, options: Partial<OutboundOptions> = {}) =>
  webhookPoster({ allowed: ANYWHERE, isPlainAllowed: true, resolve: async () => [], ...options })({
    url,
    headers: {},
    body: '{}',
    signal: new AbortController().signal,
  });

it('plain http reaches loopback, by its address or by a name that the system knows', async () => {
  expect((await post(`http://127.0.0.1:${port}/in`)).status).toBe(204);
  expect((await post(`http://localhost:${port}/by-name`, { resolve: askingSystem })).status).toBe(204);
  expect(received).toEqual([`POST /in 127.0.0.1:${port}`, `POST /by-name localhost:${port}`]);
});

it.each([
  ['http://10.0.0.1/', []],
  ['http://logs.example/', ['10.0.0.1']],
  ['http://logs.example/', ['127.0.0.1', '10.0.0.1']],
])('plain http goes nowhere else: %s at %s', async (url, addresses) => {
  await expect(post(url, { resolve: async () => addresses })).rejects.toThrow('forbidden_address');
});

it('plain http is forbidden where no operator has chosen the address', async () => {
  await expect(post(`http://127.0.0.1:${port}/`, { isPlainAllowed: false })).rejects.toThrow('forbidden_address');
});
