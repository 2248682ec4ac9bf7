import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { doubtful, good } from '../../agent/doctor/finding.js';
import { hostKeyChecks } from '../../agent/doctor/host-key-checks.js';
import { HostKeys } from '../../agent/host/network/ssh-host-key.js';
import { runWithRightsOfUnit } from '../harness/unit-rights.js';

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
  const keys = new HostKeys('127.0.0.1');
  expect(await keys.at(await serverThat(answers))).toBe('');
  expect(keys.fault).toBe('');
});

const findingOf = async (keys: HostKeys, hostKeyFault = '') =>
  (await hostKeyChecks(keys, async () => ({ connected: true, hostKeyFault }))[0]?.look())?.[0];

it.each([
  ['has no ssh-keyscan', '#!/bin/sh\nexit 127\n', 0o755, /ssh-keyscan is not installed/],
  ['cannot run it as another account', '', 0o644, /ssh-keyscan cannot be run as an account without rights: .*EACCES/],
])('a host that %s says so, and its doctor what to do', async (_what, timeout, mode, why) => {
  const folder = mkdtempSync(join(tmpdir(), 'gpurent-path-'));
  chmodSync(folder, 0o755);
  writeFileSync(join(folder, 'timeout'), timeout, { mode });
  const path = process.env['PATH'];
  process.env['PATH'] = folder;
  try {
    const keys = new HostKeys('127.0.0.1');
    await expect(keys.at(9)).rejects.toThrow(why);
    expect(keys.fault).toMatch(why);
    expect(await findingOf(keys)).toMatchObject({
      verdict: 'doubtful',
      what: expect.stringMatching(why) as string,
      advice: expect.stringContaining('openssh-client') as string,
    });
  } finally {
    process.env['PATH'] = path;
    rmSync(folder, { recursive: true });
  }
});

it('the doctor, who has more rights, says what the agent cannot do', async () => {
  const keys = new HostKeys('127.0.0.1');
  expect(await findingOf(keys)).toEqual(good(expect.stringContaining('can be read') as string));
  expect(await findingOf(keys, 'spawn timeout EPERM')).toEqual(
    doubtful(expect.stringContaining('spawn timeout EPERM') as string, expect.stringContaining('CAP_SETUID') as string),
  );
});

/** Becoming another account takes a right that only root has. */
it.runIf(process.getuid?.() === 0)('the unit of the agent has the rights to become another account', () => {
  const asNobody = `require('child_process').execFile('id', ['-u'], { uid: 65534, gid: 65534 }, (error, stdout) => console.log(error ? error.code : stdout.trim()))`;
  expect(runWithRightsOfUnit(process.execPath, ['-e', asNobody])).toBe('65534');
});
