import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import { SimulatedGpus } from '../../agent/host/gpus/simulated.js';
import { PortAllocator } from '../../agent/host/ports.js';
import { DockerRuntime } from '../../agent/runtime/docker/docker-runtime.js';
import { Engine } from '../../agent/runtime/docker/engine.js';
import { systemClock } from '../../shared/clock.js';
import { DOCKER_SOCKET, GUEST_TOOLS, SAMPLE_IMAGE, containersOf, docker, execIn, occupy } from '../harness/docker.js';
import { eventually } from '../harness/eventually.js';
import { describeRuntime, specOf } from '../suites/runtime-suite.js';

const ports = { first: 22_100, last: 22_104 };
const bindAddress = '127.0.0.1';

async function makeRuntime(): Promise<DockerRuntime> {
  const engine = new Engine(DOCKER_SOCKET, systemClock);
  const host = { hostId: randomUUID(), guestTools: GUEST_TOOLS, bindAddress };
  const held = async () => (await runtime.list()).flatMap(({ sshPort }) => sshPort ?? []);
  const allocator = new PortAllocator(ports, bindAddress, held);
  const runtime: DockerRuntime = new DockerRuntime(engine, systemClock, host, allocator, new SimulatedGpus(1, 'test'));
  await runtime.prepare();
  return runtime;
}

describe('the runtime on Docker', () => {
  describeRuntime(async () => ({
    runtime: await makeRuntime(),
    ports,
    image: SAMPLE_IMAGE,
    takePort: (port) => occupy(port, bindAddress),
    print: (instanceId, line) => execIn(instanceId, 'sh', '-c', `echo "${line}" >> /out`),
    exit: (instanceId, code) => execIn(instanceId, 'sh', '-c', `echo ${code} > /exit`),
  }));
});

describe('a container', () => {
  const id = randomUUID();
  afterAll(async () => (await makeRuntime()).remove(id).catch(() => undefined));

  it('holds no privilege, mount or device beyond the list', async () => {
    const runtime = await makeRuntime();
    await runtime.create(id, 1, specOf(SAMPLE_IMAGE, { cpuMillis: 500, memoryMb: 128 }));
    const { HostConfig, Mounts } = await docker.getContainer(`gpurent-${id}`).inspect();
    expect(HostConfig).toMatchObject({
      Privileged: false,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      NetworkMode: 'gpurent',
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
    expect(Mounts.map(({ Destination, RW }) => ({ Destination, RW }))).toEqual([
      { Destination: '/.gpurent', RW: false },
    ]);
    await runtime.remove(id);
    expect(await containersOf(id)).toEqual([]);
  });

  it('of another host on the same Docker is not its own', async () => {
    const [mine, other] = [await makeRuntime(), await makeRuntime()];
    await mine.create(id, 1, specOf(SAMPLE_IMAGE));
    expect(await other.find(id)).toEqual({ state: 'absent' });
    expect(await other.list()).toEqual([]);
    await mine.remove(id);
  });

  it('shows long and binary lines without harm', async () => {
    const runtime = await makeRuntime();
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
