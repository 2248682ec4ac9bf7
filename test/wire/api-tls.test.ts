import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { get } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { DAY_MS } from '../../shared/time.js';
import { createControlPlane, type ControlPlane } from '../../control-plane/app.js';
import { eventually } from '../../scripts/eventually.js';
import { silentLogger } from '../../shared/logger.js';
import { ManualClock } from '../harness/manual-clock.js';
import { memoryFolder } from '../harness/memory-folder.js';

let clock: ManualClock;
let folder: string;
let own: ControlPlane;
let http: string;

beforeEach(async () => {
  clock = new ManualClock(Date.now());
  folder = memoryFolder('gpurent-tls-');
  const config = {
    httpAddress: '127.0.0.1:0',
    grpcAddress: '127.0.0.1:0',
    database: join(folder, 'gpurent.db'),
    secretKey: randomBytes(32),
    logLevel: 'silent',
    logFormat: null,
    tls: {
      http: true,
      grpc: false,
      names: ['localhost', '127.0.0.1'],
    },
    rateLimits: {
      perAddress: 99,
      perCredential: 99,
      attemptsPerAddress: 99,
      attemptsPerAccount: 99,
    },
  };
  own = createControlPlane(config, silentLogger, { clock });
  ({ http } = await own.start({ heartbeat: false }));
});
afterEach(async () => {
  await own.stop();
  rmSync(folder, { recursive: true });
});

it('answers who trusts its authority, by a certificate that is made anew a month before it ends', async () => {
  const ca = await own.platform.authority.certificate();
  const read = () =>
    new Promise<{ status: number | undefined; shown: string }>((resolve, reject) => {
      get(`https://${http}/healthz`, { ca, agent: false }, (response) => {
        const shown = response.socket instanceof TLSSocket ? response.socket.getPeerCertificate().fingerprint256 : '';
        response.resume().on('end', () => resolve({ status: response.statusCode, shown }));
      }).on('error', reject);
    });
  const first = await read();
  expect(first.status).toBe(200);
  clock.advance(59 * DAY_MS);
  expect((await read()).shown).toBe(first.shown);
  clock.advance(2 * DAY_MS);
  await own.reload();
  // What is shown now begins in the future of the machine that this test runs on.
  await expect(read()).rejects.toThrow(/not yet valid/);
});

it('lets connections go on which a handshake has failed, or never ended', async () => {
  const [host = '', port = ''] = http.split(':');
  const dial = (bytes: Buffer) => {
    const socket = connect({ host, port: Number(port) }, () => socket.write(bytes));
    return socket.on('error', () => undefined).resume();
  };
  // The beginning of a ClientHello, of which the rest does not come; and something else altogether.
  const halfOpen = dial(Buffer.from('1603010200010001fc0303', 'hex'));
  const garbage = dial(Buffer.from('GET / HTTP/1.1'));
  await eventually('the failed one to be let go', () => garbage.closed);
  await eventually('the half-open one to be let go', () => halfOpen.closed, 60_000);
});
