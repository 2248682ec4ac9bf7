import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { statusIs } from '../harness/control-plane.js';
import { containersOf, docker, makeImage } from '../harness/docker.js';
import { eventually } from '../../scripts/eventually.js';
import { makePublicKey } from '../harness/keys.js';
import { RealPlatform, RealRenter } from '../harness/real.js';
import { describeHost } from '../suites/host-suite.js';

const LONG_MS = 180_000;

let real: RealPlatform;
let renter: RealRenter;

beforeAll(async () => {
  real = await RealPlatform.start();
  renter = await RealRenter.on(real);
});
afterAll(() => real.stop());

interface MachineBody {
  gpus: { uuid: string; instance_id: string | null }[];
}

interface Size {
  cpu_cores: number;
  memory_mb: number;
}

async function gpusOf(id: string): Promise<string[]> {
  const { gpus } = await real.operator.get<MachineBody>(`/v1/operator/machines/${real.hostId}`);
  return gpus.filter((gpu) => gpu.instance_id === id).map(({ uuid }) => uuid);
}

function isOpen(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

function running(id: string): Promise<InstanceBody> {
  return statusIs(renter.api, id, 'running', LONG_MS);
}

it('a renter deploys, logs in, reads the log, stops, starts and destroys', async () => {
  const command = ['sh', '-c', 'while [ ! -s /root/note ]; do sleep 0.1; done; cat /root/note; sleep 100000'];
  const talking = await RealRenter.on(real, { command });
  const created = await talking.deploy({ env_overrides: [{ key: 'GREETING', value: 'hello there' }] });
  const up = await statusIs(talking.api, created.id, 'running', LONG_MS);
  const seenAt = Date.now();
  expect(up.ssh_port).not.toBe(22);

  // As large as its offer has said.
  const { cpu_cores, memory_mb } = await talking.api.get<Size>(`/v1/offers/${talking.offerId}`);
  const { NanoCpus, Memory } = (await docker.getContainer(`gpurent-${created.id}`).inspect()).HostConfig;
  expect({ NanoCpus, Memory }).toEqual({ NanoCpus: cpu_cores * 1e9, Memory: memory_mb * 2 ** 20 });

  // In: with the environment, as root, seeing exactly its own GPU.
  const gpus = await gpusOf(created.id);
  expect(gpus).toHaveLength(1);
  expect(await talking.ssh(up, 'id -u; echo "$GREETING"; echo "$NVIDIA_VISIBLE_DEVICES $GPU_COUNT"')).toBe(
    `0\nhello there\n${gpus.join(',')} 1`,
  );
  await talking.ssh(up, 'echo "a line of my own" > /root/note');
  await eventually('the line in the log', async () => {
    const { lines } = await talking.api.get<{ lines: string[] }>(`/v1/instances/${created.id}/logs`);
    return lines.includes('a line of my own');
  });
  writeFileSync(real.path('upload'), 'uploaded');
  await talking.scp(up, real.path('upload'), '/root/upload');
  expect(await talking.ssh(up, 'cat /root/upload')).toBe('uploaded');

  // Stopped: the port is closed, the container is kept, the GPU stays its own.
  const seenMs = Date.now() - seenAt;
  await talking.api.post(`/v1/instances/${created.id}/stop`);
  await statusIs(talking.api, created.id, 'stopped', LONG_MS);
  expect(await isOpen(String(up.ssh_host), Number(up.ssh_port))).toBe(false);
  expect((await containersOf(created.id)).map(({ State }) => State)).toEqual(['exited']);
  expect(await gpusOf(created.id)).toEqual(gpus);

  // Charged: what the host said that it ran, which is no less than was seen of it, and no more than passed.
  const passedMs = Date.now() - Date.parse(String(created['created_at']));
  const price = Number(up['price_per_hour_micro']);
  const { spend_micro } = await eventually('the charge', async () => {
    const charged = await talking.api.get<InstanceBody>(`/v1/instances/${created.id}`);
    return charged.spend_micro > 0 && charged;
  });
  expect(spend_micro).toBeLessThanOrEqual((price * passedMs) / 3_600_000);
  expect(spend_micro).toBeGreaterThanOrEqual(Math.floor((price * seenMs) / 3_600_000));

  // Started: the same file, GPUs, port and host key.
  await talking.start(created.id);
  const again = await statusIs(talking.api, created.id, 'running', LONG_MS);
  expect(again.ssh_port).toBe(up.ssh_port);
  expect(await talking.ssh(again, 'cat /root/note; echo "$NVIDIA_VISIBLE_DEVICES"')).toBe(
    `a line of my own\n${gpus.join(',')}`,
  );

  await talking.destroy(created.id);
  expect(await containersOf(created.id)).toEqual([]);
  expect(await gpusOf(created.id)).toEqual([]);
  expect(await isOpen(String(up.ssh_host), Number(up.ssh_port))).toBe(false);
  expect((await talking.api.get<{ state: string }>(`/v1/offers/${talking.offerId}`)).state).toBe('available');
});

describe('the agent on Docker', () => {
  describeHost(() => ({
    renter: renter.api,
    offerId: renter.offerId,
    templateId: renter.templateId,
    sshKeyId: renter.sshKeyId,
    timeoutMs: LONG_MS,
  }));
});

describe('SSH', () => {
  it('lets in the key of the renter and no other', async () => {
    const { id } = await renter.deploy();
    const up = await running(id);
    const stranger = await RealRenter.on(real);
    expect(await renter.ssh(up, 'echo in')).toBe('in');
    await expect(renter.ssh(up, 'echo in', stranger.keyFile)).rejects.toThrow(/Permission denied/);
    await renter.destroy(id);
  });

  it('is not there without a key', async () => {
    const { id } = await renter.deploy({ ssh_key_id: null });
    expect(await running(id)).toMatchObject({ ssh_host: null, ssh_port: null });
    const [container] = await containersOf(id);
    expect(container?.Ports).toEqual([]);
    await renter.destroy(id);
  });

  it('is not opened by a key that was added later', async () => {
    const { id } = await renter.deploy();
    await running(id);
    await renter.api.post('/v1/ssh-keys', { name: 'later', public_key: makePublicKey('-t', 'ed25519') });
    const { Env } = (await docker.getContainer(`gpurent-${id}`).inspect()).Config;
    expect(Env.filter((entry) => entry.startsWith('GPURENT_SSH_AUTHORIZED_KEY'))).toHaveLength(1);
    await renter.destroy(id);
  });
});

describe('an image', () => {
  it.each([
    ['USER 1234:5678', 'uid=1234 gid=5678 /'],
    ['USER 1234', 'uid=1234 gid=0 /'],
    ['USER worker', 'uid=1000 gid=1000 /home/worker'],
    ['ENV HOME=/data', 'uid=0 gid=0 /data'],
  ])('that says %s has its own command run so', async (instruction, expected) => {
    const print = 'echo "uid=$(id -u) gid=$(id -g) $HOME"; trap "echo bye; exit" WINCH; while :; do sleep 0.1; done';
    const command = `CMD ${JSON.stringify(['sh', '-c', print])}`;
    const image = await makeImage('gpurent/test-image', [instruction, command], 'SIGWINCH');
    const owner = await RealRenter.on(real, { image });
    const { id } = await owner.deploy();
    const up = await statusIs(owner.api, id, 'running', LONG_MS);
    expect(await owner.ssh(up, 'id -u')).toBe('0');
    const logs = async () => (await owner.api.get<{ lines: string[] }>(`/v1/instances/${id}/logs`)).lines;
    await eventually('its line', async () => (await logs()).includes(expected));
    // As Docker stops it, but without a deadline: the signal of the image is what its own command gets.
    await docker.getContainer(`gpurent-${id}`).kill({ signal: 'SIGTERM' });
    await statusIs(owner.api, id, 'error', LONG_MS);
    await eventually('its last line', async () => (await logs()).includes('bye'));
    expect(await logs()).toEqual([expected, 'bye']);
    await owner.destroy(id);
    await docker.getImage(image).remove();
  });
});

describe('a batch template', () => {
  it('ends with its command, in error with code and last lines', async () => {
    const batch = await RealRenter.on(real, {
      mode: [],
      command: ['sh', '-c', 'echo working; echo it broke >&2; exit 3'],
    });
    const { id } = await batch.deploy();
    const ended = await statusIs(batch.api, id, 'error', LONG_MS);
    expect(ended).toMatchObject({
      error_code: 'workload_failed',
      error_message: expect.stringContaining('it broke') as string,
    });
    expect(ended['started_at']).not.toBeNull();
    await eventually('its lines', async () => {
      const { lines } = await batch.api.get<{ lines: string[] }>(`/v1/instances/${id}/logs`);
      return ['working', 'it broke'].every((line) => lines.includes(line));
    });
    expect(await gpusOf(id)).toEqual([]);
    await batch.destroy(id);
    expect(await containersOf(id)).toEqual([]);
  });

  it('that is interactive outlives its command', async () => {
    const shell = await RealRenter.on(real, { command: ['true'], onstart: 'echo prepared > /prepared' });
    const { id } = await shell.deploy();
    const up = await statusIs(shell.api, id, 'running', LONG_MS);
    expect(await shell.ssh(up, 'cat /prepared')).toBe('prepared');
    await shell.destroy(id);
  });
});
