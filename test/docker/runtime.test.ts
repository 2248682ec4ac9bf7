import { randomUUID } from 'node:crypto';
import { Engine } from '../../agent/runtime/docker/engine.js';
import { EtcBound } from '../../agent/runtime/docker/files/etc-bound.js';
import { isMadeHere } from '../../agent/runtime/docker/images/images.js';
import { systemClock } from '../../shared/clock.js';
import { silentLogger } from '../../shared/logger.js';
import { afterAll, describe, expect, it } from 'vitest';
import {
  DOCKER_SOCKET,
  SAMPLE_IMAGE,
  VM_RUNNER,
  containersOf,
  docker,
  execIn,
  makeImage,
  occupy,
} from '../harness/docker.js';
import { eventually } from '../../scripts/eventually.js';
import type { LocalImages } from '../../agent/domain/local-images.js';
import { makeRuntime } from '../harness/runtime.js';
import { takePorts } from '../harness/worker.js';
import { describeRuntime, specOf } from '../suites/runtime-suite.js';

const ports = takePorts(5);
const bindAddress = '127.0.0.1';

describe('the runtime on Docker', () => {
  describeRuntime(async () => ({
    runtime: await makeRuntime({ ports }),
    ports,
    image: SAMPLE_IMAGE,
    takePort: (port) => occupy(port, bindAddress),
    print: (instanceId, line) => execIn(instanceId, 'sh', '-c', `echo "${line}" >> /out`),
    exit: (instanceId, code) => execIn(instanceId, 'sh', '-c', `echo ${code} > /exit`),
  }));
});

describe('a container', () => {
  const id = randomUUID();
  afterAll(async () => (await makeRuntime({ ports })).remove(id).catch(() => undefined));

  it('holds no privilege, mount or device beyond the list', async () => {
    const runtime = await makeRuntime({ ports });
    await runtime.create(id, 1, specOf(SAMPLE_IMAGE, { cpuMillis: 500, memoryMb: 128 }));
    const { HostConfig, Mounts } = await docker.getContainer(`gpurent-${id}`).inspect();
    expect(HostConfig).toMatchObject({
      Privileged: false,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      NetworkMode: `gpurent-${id}`,
      Memory: 128 * 1024 * 1024,
      MemorySwap: 128 * 1024 * 1024,
      NanoCpus: 500_000_000,
      PidsLimit: 4096,
      PidMode: '',
      UTSMode: '',
    });
    expect(HostConfig.CapAdd).not.toContain('NET_RAW');
    expect(HostConfig.CapAdd).not.toContain('MKNOD');
    expect(HostConfig.CapAdd).not.toContain('SYS_ADMIN');
    expect(HostConfig.Binds ?? []).toEqual([]);
    expect(HostConfig.Devices ?? []).toEqual([]);
    expect(Mounts.map(({ Destination, RW }) => `${Destination} ${RW}`).sort()).toEqual([
      '/.gpurent false',
      '/.gpurent-access false',
      '/etc/hostname false',
      '/etc/hosts false',
      '/etc/resolv.conf false',
    ]);
    await runtime.remove(id);
    expect(await containersOf(id)).toEqual([]);
  });

  it('writes to no file that is outside of its disk, and finds names as before, also when it starts again', async () => {
    const runtime = await makeRuntime({ ports });
    const files = '/etc/hosts /etc/hostname /etc/resolv.conf';
    const script = `for file in ${files}; do echo x >>$file || echo "held $file"; done 2>/dev/null; cat ${files}`;
    await runtime.create(id, 1, specOf(SAMPLE_IMAGE, { command: ['sh', '-c', script], interactive: false }));
    for (let round = 0; round < 2; round++) {
      await eventually('its end', async () => (await runtime.find(id)).state === 'stopped');
      const lines = (await runtime.tail(id, 20)).map(({ text }) => text);
      expect(lines.slice(-9)).toEqual([
        ...files.split(' ').map((file) => `held ${file}`),
        '127.0.0.1\tlocalhost',
        `127.0.1.1\t${id.slice(0, 8)}`,
        '::1\tlocalhost ip6-localhost ip6-loopback',
        id.slice(0, 8),
        'nameserver 127.0.0.11',
        'options ndots:0',
      ]);
      await runtime.start(id);
    }
    await runtime.remove(id);
  });

  it('of an older agent, which can write to files of Docker’s, is killed once it has filled one', async () => {
    const runtime = await makeRuntime({ ports });
    await runtime.create(id, 1, specOf(SAMPLE_IMAGE));
    const { Config } = await docker.getContainer(`gpurent-${id}`).inspect();
    await docker.getContainer(`gpurent-${id}`).remove({ force: true });
    const write = 'dd if=/dev/zero of=/etc/hosts bs=1M count=2; sleep 1000';
    const { Image, Labels } = Config;
    const older = await docker.createContainer({
      name: `gpurent-${id}`,
      Image,
      Labels,
      Cmd: ['sh', '-c', write],
      HostConfig: { NetworkMode: 'none' },
    });
    await older.start();
    const bound = new EtcBound(new Engine(DOCKER_SOCKET, systemClock), runtime, silentLogger);
    await eventually('its end', async () => {
      await bound.check();
      return (await runtime.find(id)).state === 'stopped';
    });
    await runtime.remove(id);
  });

  it('is made of an image that is only here where its owner rents that out', async () => {
    const fetch = async (localImages: LocalImages) =>
      (await makeRuntime({ ports, localImages })).fetchImage(
        specOf(SAMPLE_IMAGE),
        () => undefined,
        new AbortController().signal,
      );
    await fetch([SAMPLE_IMAGE]);
    // The sandbox has no registry.
    await expect(fetch(['gpurent/other:1'])).rejects.toThrow(/cannot be pulled/);
    await expect(fetch([])).rejects.toThrow(/cannot be pulled/);
  });

  it('of an older agent keeps its SSH key, and says so', async () => {
    const runtime = await makeRuntime({ ports });
    const access = { revision: 1, tokenHash: 'new', sshAuthorizedKey: 'ssh-ed25519 new', env: [] };
    await runtime.create(id, 1, specOf(SAMPLE_IMAGE));
    const { Config } = await docker.getContainer(`gpurent-${id}`).inspect();
    await docker.getContainer(`gpurent-${id}`).remove({ force: true });
    const { Image, Labels, Env } = Config;
    // Without a network: another Docker of a test may have removed docker0.
    const older = { Image, Labels, Env, Cmd: ['sleep', '1000'], HostConfig: { NetworkMode: 'none' } };
    await (await docker.createContainer({ name: `gpurent-${id}`, ...older })).start();
    expect(await runtime.replaceAccess(id, access)).toEqual({ sshKeyStays: true });
    expect(await runtime.find(id)).toMatchObject({ tokenHash: 'new' });
    const { sshAuthorizedKey } = specOf(SAMPLE_IMAGE);
    expect(await runtime.replaceAccess(id, { ...access, sshAuthorizedKey })).toEqual({ sshKeyStays: false });
    await runtime.remove(id);
  });

  it('begins where its image says, by its own means, without a health check or files of a crash', async () => {
    const runtime = await makeRuntime({ ports });
    const image = await makeImage('gpurent/test-workdir', ['WORKDIR /made/for/it']);
    await runtime.create(id, 1, specOf(image, { command: ['sh', '-c', 'pwd; ulimit -c'], interactive: false }));
    await eventually('its end', async () => (await runtime.find(id)).state === 'stopped');
    expect((await runtime.tail(id, 10)).map(({ text }) => text)).toEqual(['/made/for/it', '0']);
    const { Config } = await docker.getContainer(`gpurent-${id}`).inspect();
    expect(Config).toMatchObject({ WorkingDir: '/', Healthcheck: { Test: ['NONE'] } });
    await runtime.remove(id);
  });

  it.each(['/proc/self/fd/8', '/proc', '//dev/fd/3', '/made/../proc/self', '/sys/fs'])(
    'is not made of an image whose WORKDIR is %s',
    async (folder) => {
      const runtime = await makeRuntime({ ports });
      const image = 'gpurent/test-workdir:1';
      const container = await docker.createContainer({ Image: SAMPLE_IMAGE, Cmd: ['true'], WorkingDir: folder });
      await container.commit({ repo: 'gpurent/test-workdir', tag: '1' });
      await container.remove();
      await expect(runtime.create(id, 1, specOf(image))).rejects.toMatchObject({
        code: 'IMAGE_UNAVAILABLE',
        message: expect.stringContaining('WORKDIR') as string,
      });
      expect(await containersOf(id)).toEqual([]);
    },
  );

  it('has the memory of its slice and no more, and no neighbour is killed for it', async () => {
    const runtime = await makeRuntime({ ports });
    const neighbour = randomUUID();
    const command = ['dd', 'if=/dev/zero', 'of=/dev/null', 'bs=512M', 'count=1'];
    const spec = { interactive: false, sshAuthorizedKey: '', memoryMb: 128, cpuMillis: 1000 };
    await runtime.create(neighbour, 1, specOf(SAMPLE_IMAGE, { ...spec, command: ['sleep', '1000'] }));
    await runtime.create(id, 1, specOf(SAMPLE_IMAGE, { ...spec, command }));
    const ended = await eventually('its end', async () => {
      const found = await runtime.find(id);
      return found.state === 'stopped' && found;
    });
    expect(ended).toMatchObject({ exitCode: 137, outOfMemory: true });
    expect(await runtime.find(neighbour)).toMatchObject({ state: 'running' });
    for (const each of [id, neighbour]) await runtime.remove(each);
  });

  it('starts again when somebody has tidied up what looked unused', async () => {
    const runtime = await makeRuntime({ ports });
    await runtime.create(id, 1, specOf(SAMPLE_IMAGE));
    await runtime.stop(id);
    await docker.getNetwork(`gpurent-${id}`).remove();
    await runtime.start(id);
    const found = await runtime.find(id);
    expect(found).toMatchObject({ state: 'running', address: expect.stringMatching(/^10\./) as string });
    const { sshPort } = found as { sshPort: number };
    await eventually('SSH', () => runtime.sshAnswers(sshPort));
    await runtime.remove(id);
  });

  it('is made of nothing on the host but what its name says', async () => {
    const engine = new Engine(DOCKER_SOCKET, systemClock);
    const { Id } = await docker.getImage(SAMPLE_IMAGE).inspect();
    for (const name of [SAMPLE_IMAGE, `docker.io/${SAMPLE_IMAGE}`]) expect(await isMadeHere(engine, name)).toBe(true);
    for (const name of [Id, Id.slice(7, 19), 'gpurent/sample']) expect(await isMadeHere(engine, name)).toBe(false);
    await expect(isMadeHere(engine, Id.slice(7))).rejects.toMatchObject({ code: 'IMAGE_UNAVAILABLE' });
    const fetching = (await makeRuntime({ ports })).fetchImage(
      specOf(VM_RUNNER),
      () => {},
      new AbortController().signal,
    );
    await expect(fetching).rejects.toThrow(/this host's own, and is not rented out/);
  });

  it('of another host on the same Docker is not its own', async () => {
    const [mine, other] = [await makeRuntime({ ports }), await makeRuntime({ ports })];
    await mine.create(id, 1, specOf(SAMPLE_IMAGE));
    expect(await other.find(id)).toEqual({ state: 'absent' });
    expect(await other.list()).toEqual([]);
    await mine.remove(id);
  });

  it('shows long and binary lines without harm', async () => {
    const runtime = await makeRuntime({ ports });
    const command = ['sh', '-c', 'head -c 40000 /dev/zero | tr "\\0" x; echo; printf "\\377\\376\\n"; echo end'];
    await runtime.create(id, 1, specOf(SAMPLE_IMAGE, { interactive: false, sshAuthorizedKey: '', command }));
    const lines = await eventually('the last line', async () => {
      const texts = (await runtime.tail(id, 10)).map(({ text }) => text);
      return texts.at(-1) === 'end' && texts;
    });
    expect(lines).toEqual(['x'.repeat(16_384), '\ufffd\ufffd', 'end']);
    await runtime.remove(id);
  });
});
