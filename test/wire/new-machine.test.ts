import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeLeft } from '../../agent/domain/left-behind.js';
import { enroll, type Enrollment } from '../../agent/link/enrollment.js';
import { formerFolder } from '../../agent/link/former-state.js';
import { loadIdentity } from '../../agent/link/identity.js';
import { Gpu, type EarlierHost } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { TestControlPlane } from '../harness/control-plane.js';
import { fakeGpuUuid } from '../harness/fake-inventory.js';
import { INVENTORY } from '../harness/inventory.js';

let test: TestControlPlane;
const folders: string[] = [];
const gpus = [Gpu.create({ uuid: fakeGpuUuid(1, 1), model: 'test', healthy: true })];

beforeAll(async () => {
  test = await TestControlPlane.start();
});
afterAll(async () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  await test.stop();
});

async function enrolled(options: Partial<Enrollment> = {}, stateDir = newFolder(), containers: EarlierHost[] = []) {
  const token = options.token ?? (await test.enrollmentToken());
  const enrollment = { controlPlane: test.grpcAddress, ...options, token };
  await enroll(stateDir, enrollment, { inventory: { ...INVENTORY, gpus }, earlier: containers });
  return { stateDir, hostId: loadIdentity(stateDir).hostId };
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gpurent-new-'));
  folders.push(folder);
  return folder;
}

/** What an agent keeps that belongs to its machine, and what does not. */
function fill(stateDir: string): void {
  for (const file of ['journal.db', 'journal.db-wal', 'journal.db.reserve', 'images.json', 'own.pem'])
    writeFileSync(join(stateDir, file), file);
  for (const folder of ['data-roots', 'etc', 'access', 'etc-canary']) {
    mkdirSync(join(stateDir, folder));
    writeFileSync(join(stateDir, folder, 'note'), folder);
  }
}

const remove = (hostId: string) => test.operator.delete(`/v1/operator/machines/${hostId}`);

describe('a host whose machine was removed', () => {
  it('is a new machine by "enroll --new", which loses nothing of the one before', async () => {
    const { stateDir, hostId } = await enrolled();
    fill(stateDir);
    const identity = readFileSync(join(stateDir, 'identity.json'), 'utf8');
    await remove(hostId);
    const after = await enrolled({ new: true }, stateDir);
    expect(after.hostId).not.toBe(hostId);
    expect(readdirSync(stateDir).sort()).toEqual([`before-${hostId}`, 'identity.json', 'images.json', 'own.pem']);
    const aside = formerFolder(stateDir, hostId);
    expect(readFileSync(join(aside, 'identity.json'), 'utf8')).toBe(identity);
    expect(readFileSync(join(aside, 'data-roots', 'note'), 'utf8')).toBe('data-roots');
    expect(readFileSync(join(aside, 'journal.db-wal'), 'utf8')).toBe('journal.db-wal');
    await remove(after.hostId);
  });

  it('is told of it wherever it looks for the way back', async () => {
    const { stateDir, hostId } = await enrolled();
    await remove(hostId);
    await expect(enrolled({ again: true }, stateDir)).rejects.toThrow(
      /token is not for machine .*removed, enroll with --new instead of --again/,
    );
    const asked = await test.operator.request('POST', '/v1/operator/enrollment-tokens', { machine_id: hostId });
    expect(asked).toMatchObject({
      status: 404,
      body: { code: 'MACHINE_NOT_FOUND', message: expect.stringMatching(/removed;.*enroll --new/) as string },
    });
  });
});

describe('a host whose machine is there', () => {
  it('is refused as a new machine while its Docker has workloads of it, and keeps everything', async () => {
    const { stateDir, hostId } = await enrolled();
    fill(stateDir);
    const its = [{ hostId, workloads: 1 }];
    await expect(enrolled({ new: true }, stateDir, its)).rejects.toThrow(
      `this host is already machine host (${hostId})`,
    );
    expect(loadIdentity(stateDir).hostId).toBe(hostId);
    expect(existsSync(join(stateDir, 'journal.db'))).toBe(true);
  });

  it('stays that machine, with its journal, where the token is of it', async () => {
    const stateDir = folders.at(-1) ?? '';
    const { hostId } = loadIdentity(stateDir);
    const { token } = await test.operator.post<{ token: string }>('/v1/operator/enrollment-tokens', {
      machine_id: hostId,
    });
    expect((await enrolled({ new: true, token }, stateDir)).hostId).toBe(hostId);
    expect(existsSync(join(stateDir, 'journal.db'))).toBe(true);
    await remove(hostId);
  });
});

it('"--new" is no dead end on a host that was none, nor on one whose identity cannot be read', async () => {
  const { stateDir, hostId } = await enrolled({ new: true });
  await remove(hostId);
  writeFileSync(join(stateDir, 'identity.json'), '{');
  const after = await enrolled({ new: true }, stateDir);
  expect(readFileSync(join(stateDir, 'before-unknown', 'identity.json'), 'utf8')).toBe('{');
  await remove(after.hostId);
});

it('what a machine leaves is told by its containers, at most twenty by name, with the commands that remove it', () => {
  const left = Array.from({ length: 22 }, (_, index) => ({
    hostId: 'A',
    container: `gpurent-${index}`,
    isRunning: index === 0,
  }));
  const [ofA, ofB] = describeLeft([...left, { hostId: 'B', container: 'other', isRunning: false }]);
  expect(ofA?.what).toMatch(
    /machine A, .*gpurent-0 \(running\), gpurent-1 \(down\), .*gpurent-19 \(down\) and 2 more$/,
  );
  expect(ofB?.what).toMatch(/machine B, .*other \(down\)$/);
  expect(ofB?.advice).toContain('docker ps --all --quiet --filter label=gpurent.host=B');
});

it('a host that is not x86_64 is refused with the reason, and its token stays unused', async () => {
  const token = await test.enrollmentToken();
  const enrollment = { controlPlane: test.grpcAddress, token };
  const from = (arch: string, stateDir = newFolder()) =>
    enroll(stateDir, enrollment, { inventory: { ...INVENTORY, arch, gpus: [] }, earlier: [] });
  for (const arch of ['arm64', 'X86_64', ''])
    await expect(from(arch)).rejects.toThrow(`inventory.arch: is "${arch}", but hosts are x86_64`);
  const { hostId } = await from('x86_64');
  await remove(hostId);
});
