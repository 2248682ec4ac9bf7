import { createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { hostKeyAt } from '../../agent/host/network/ssh-host-key.js';

let server: Server | undefined;
afterEach(() => server?.close());

async function serverThat(answers: (socket: Socket) => void): Promise<number> {
  server = createServer((socket) => {
    socket.on('error', () => undefined);
    answers(socket);
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

it.each([
  ['speaks no SSH', (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n')],
  ['writes without end', (socket: Socket) => void socket.write(`SSH-2.0-${'x'.repeat(1_000_000)}`)],
  ['gives a line of a known_hosts file', (socket: Socket) => socket.end(`127.0.0.1 ssh-ed25519 ${'A'.repeat(68)}\n`)],
  ['hangs up', (socket: Socket) => socket.destroy()],
])('a server that %s has no host key', async (_what, answers) => {
  expect(await hostKeyAt('127.0.0.1', await serverThat(answers))).toBe('');
});

it('a host without ssh-keyscan says so', async () => {
  const path = process.env['PATH'];
  process.env['PATH'] = '/nowhere';
  try {
    await expect(hostKeyAt('127.0.0.1', 9)).rejects.toThrow('ENOENT');
  } finally {
    process.env['PATH'] = path;
  }
});
