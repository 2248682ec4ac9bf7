import { rmSync } from 'node:fs';
import { connect } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createControlPlane } from '../../control-plane/app.js';
import { parseConfig } from '../../control-plane/config.js';
import { askReadiness } from '../../control-plane/readiness-client.js';
import { silentLogger } from '../../shared/logger.js';
import { memoryFolder } from '../harness/memory-folder.js';

let folder: string;
beforeEach(() => {
  folder = memoryFolder('gpurent-listening-');
});
afterEach(() => rmSync(folder, { recursive: true }));

function reach(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port }, () => resolve(void socket.destroy()));
    socket.once('error', reject);
  });
}

it.each([
  ['127.0.0.1', ['127.0.0.1']],
  ['0.0.0.0', ['127.0.0.1']],
  ['[::]', ['127.0.0.1', '::1']],
  ['[::1]', ['::1']],
  ['localhost', ['localhost', '127.0.0.1']],
  [hostname(), [hostname()]],
])('the control plane is reached where it listens on %s', async (host, from) => {
  const config = parseConfig({
    GPURENT_HTTP_ADDRESS: `${host}:0`,
    GPURENT_GRPC_ADDRESS: `${host}:0`,
    GPURENT_DATABASE: join(folder, 'gpurent.db'),
  });
  const controlPlane = createControlPlane(config, silentLogger);
  try {
    const { http, grpc } = await controlPlane.start({ heartbeat: false });
    expect([http, grpc].map((address) => address.replace(/\d+$/, ''))).toEqual([`${host}:`, `${host}:`]);
    await askReadiness(http, config.tls.http);
    for (const address of [http, grpc]) for (const each of from) await reach(each, Number(/\d+$/.exec(address)?.[0]));
  } finally {
    await controlPlane.stop();
  }
});
