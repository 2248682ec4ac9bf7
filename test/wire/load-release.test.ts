import { Metadata, type ServiceError } from '@grpc/grpc-js';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane } from '../harness/control-plane.js';
import type { FakeAgent } from '../harness/fake-agent.js';
import { dialWire } from '../harness/wire.js';

const folder = mkdtempSync(join(tmpdir(), 'gpurent-load-'));
const NAME = 'gpurent-9.9.0-linux-x64.tar.gz';
const TARBALL = randomBytes(300_000);
const SUMS = Buffer.from('sums');

let test: TestControlPlane;
let agent: FakeAgent;
const dialed: ReturnType<typeof dialWire>[] = [];
beforeAll(async () => {
  writeFileSync(join(folder, NAME), TARBALL);
  writeFileSync(join(folder, 'SHA256SUMS'), SUMS);
  test = await TestControlPlane.start();
  await serve(join(folder, NAME));
  agent = await test.host();
});
afterAll(async () => {
  for (const client of dialed) client.close();
  await test.stop();
  rmSync(folder, { recursive: true });
});

const serve = (hostRelease: string) =>
  test.restart({ hostRelease, publicUrl: test.url, publicGrpcAddress: 'gpus.example:8090' });

function open(file: string, offset: number, credential = agent.credential) {
  const client = dialWire(test.grpcAddress);
  dialed.push(client);
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${credential}`);
  return client.loadRelease({ file: `RELEASE_FILE_${file}`, offset }, metadata);
}

/** Resolves with what arrived; rejects with the refusal. */
function load(file: string, offset = 0, credential?: string) {
  const stream = open(file, offset, credential);
  const parts: { name: string; size: number; data: Buffer }[] = [];
  return new Promise<{ name: string; size: number; data: Buffer; largest: number }>((resolve, reject) => {
    stream.on('data', (part: (typeof parts)[number]) => parts.push(part));
    stream.on('error', reject);
    stream.on('end', () => {
      const data = Buffer.concat(parts.map((part) => part.data));
      const largest = Math.max(...parts.map((part) => part.data.length));
      resolve({ name: parts[0]?.name ?? '', size: parts[0]?.size ?? 0, data, largest });
    });
  });
}
const refusal = (...given: Parameters<typeof load>) =>
  load(...given).then(
    () => 'given',
    (error: unknown) => {
      const { code, details } = error as ServiceError;
      return `${code} ${details}`;
    },
  );

it('gives a host each file, whole or from where it was', async () => {
  const whole = await load('TARBALL');
  expect(whole).toMatchObject({ name: NAME, size: TARBALL.length });
  expect(whole.data.equals(TARBALL)).toBe(true);
  expect(whole.largest).toBeLessThanOrEqual(65_536);
  const rest = await load('TARBALL', 200_001);
  expect(rest.size).toBe(TARBALL.length);
  expect(rest.data.equals(TARBALL.subarray(200_001))).toBe(true);
  expect((await load('TARBALL', TARBALL.length)).data).toHaveLength(0);
  expect(await load('SUMS')).toMatchObject({ name: 'SHA256SUMS', data: SUMS });
});

it('gives nothing to strangers, to hosts that were removed, and for enrollment tokens', async () => {
  const token = await test.enrollmentToken();
  for (const credential of ['', 'wrong', token]) expect(await refusal('TARBALL', 0, credential)).toMatch(/^16 /);
  const former = await test.host();
  await test.operator.delete(`/v1/operator/machines/${former.hostId}/credentials`);
  expect(await refusal('TARBALL', 0, former.credential)).toMatch(/^16 /);
});

it('says what there is not', async () => {
  expect(await refusal('SIGNATURE')).toMatch(/^5 .*lacks this file/);
  expect(await refusal('UNSPECIFIED')).toMatch(/^5 .*no such file/);
  expect(await refusal('TARBALL', TARBALL.length + 1)).toMatch(/^5 .*fewer than this host has/);
  await serve(join(folder, 'missing.tar.gz'));
  expect(await refusal('TARBALL')).toMatch(/^5 .*cannot be read/);
  await test.restart({});
});

it('goes to two at a time for one host, and to four in all', async () => {
  writeFileSync(join(folder, 'large.tar.gz'), randomBytes(32 * 1024 * 1024));
  await serve(join(folder, 'large.tar.gz'));
  const others = [await test.host(), await test.host()];
  /** Reads the first part and no more. */
  const hold = async (credential: string) => {
    const stream = open('TARBALL', 0, credential);
    stream.on('error', () => undefined);
    await new Promise((resolve) => stream.once('readable', resolve));
    return stream;
  };
  const own = [await hold(agent.credential), await hold(agent.credential)];
  expect(await refusal('SUMS')).toMatch(/^8 /);
  const held = [...own, ...(await Promise.all(others.map(({ credential }) => hold(credential))))];
  const last = await test.host();
  expect(await refusal('SUMS', 0, last.credential)).toMatch(/^8 4 hosts load the release now/);
  held[0]?.cancel();
  await eventually('a free place', async () => (await refusal('SUMS', 0, last.credential)) === 'given');
  for (const stream of held) stream.cancel();
});
