import { randomUUID } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DOCKER_SOCKET, GUEST_TOOLS, SAMPLE_IMAGE } from '../harness/docker.js';
import { Engine } from '../../agent/runtime/docker/engine.js';
import { probeDiskQuota } from '../../agent/runtime/docker/data-roots/quota-probe.js';
import { systemClock } from '../../shared/clock.js';
import { eventually } from '../../scripts/eventually.js';
import { OwnDocker } from '../rig/own-docker.js';
import { makeRuntime } from '../harness/runtime.js';
import { takePorts } from '../harness/worker.js';
import { specOf } from '../suites/runtime-suite.js';

const LOCAL = fileURLToPath(new URL('../../.local/', import.meta.url));

let folder: string;
let data: string;
let own: OwnDocker;

/** A Docker on a file system that keeps account of who has written how much. */
beforeAll(async () => {
  mkdirSync(LOCAL, { recursive: true });
  folder = mkdtempSync(join(LOCAL, 'disk-'));
  data = join(folder, 'data');
  mkdirSync(data);
  execFileSync('truncate', ['-s', '8G', join(folder, 'file')]);
  execFileSync('mkfs.btrfs', ['-q', join(folder, 'file')]);
  execFileSync('mount', ['-o', 'loop', join(folder, 'file'), data]);
  own = await OwnDocker.start({ data });
});
afterAll(async () => {
  await own.remove();
  rmSync(folder, { recursive: true });
});

it('whether Docker holds a disk to its size is found out by trying', async () => {
  expect(await probeDiskQuota(new Engine(own.socket, systemClock), GUEST_TOOLS)).toBe(true);
  expect(await probeDiskQuota(new Engine(DOCKER_SOCKET, systemClock), GUEST_TOOLS)).toBe(false);
  expect(await own.docker.listContainers({ all: true })).toEqual([]);
  expect((await own.docker.listImages()).flatMap(({ RepoTags }) => RepoTags)).toEqual([SAMPLE_IMAGE]);
});

it('an image whose folders Docker keeps outside of the container is refused, for they would be held to nothing', async () => {
  const container = await own.docker.createContainer({ Image: SAMPLE_IMAGE, Cmd: ['true'] });
  await container.commit({ repo: 'gpurent/volumes', tag: '1', changes: 'VOLUME /data' });
  await container.remove();
  const options = { socket: own.socket, ports: takePorts(5) };
  const id = randomUUID();
  const held = await makeRuntime({ ...options, hasDiskQuota: true });
  await expect(held.create(id, 1, specOf('gpurent/volumes:1'))).rejects.toThrow(/declares VOLUME \/data/);
  expect(await held.find(id)).toEqual({ state: 'absent' });
  const free = await makeRuntime(options);
  await free.create(id, 1, specOf('gpurent/volumes:1'));
  await free.remove(id);
  expect((await own.docker.listVolumes()).Volumes).toEqual([]);
});

it('a renter who writes more than was rented fails, and a neighbour notices nothing', async () => {
  // Linux 6.18 can stop counting once a container was removed, until it is told to count anew.
  execFileSync('btrfs', ['subvolume', 'sync', data]);
  execFileSync('btrfs', ['quota', 'rescan', '-w', data]);
  const runtime = await makeRuntime({ socket: own.socket, ports: takePorts(5), hasDiskQuota: true });
  const [greedy, neighbour] = [randomUUID(), randomUUID()];
  const write = (mb: number) => [
    'sh',
    '-c',
    `dd if=/dev/zero of=/big bs=1M count=${mb}; echo "exit $?"; du -m /big; sleep 1000`,
  ];
  const spec = { diskGb: 1, interactive: false, sshAuthorizedKey: '', memoryMb: 512, cpuMillis: 2000 };
  await runtime.create(greedy, 1, specOf(SAMPLE_IMAGE, { ...spec, command: write(1_500) }));
  const said = async (id: string) =>
    eventually(
      'how its writing ended',
      async () => {
        const text = (await runtime.tail(id, 20)).map((line) => line.text).join('\n');
        return /\/big$/m.test(text) && text;
      },
      60_000,
    );
  const failed = await said(greedy);
  expect(failed).toMatch(/Disk quota exceeded|No space left/);
  expect(failed).toContain('exit 1');
  await runtime.create(neighbour, 1, specOf(SAMPLE_IMAGE, { ...spec, command: write(500) }));
  expect(await said(neighbour)).toMatch(/exit 0\n500\t/);
  for (const id of [greedy, neighbour]) await runtime.remove(id);
});
