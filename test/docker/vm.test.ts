import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { WorkloadSpec } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { NO_PASSTHROUGH } from '../../agent/host/gpus/no-passthrough.js';
import { Engine } from '../../agent/runtime/docker/engine.js';
import { RunnerJobs } from '../../agent/runtime/docker/vm/runner-job.js';
import { VmSupport } from '../../agent/runtime/docker/vm/vm-support.js';
import { systemClock } from '../../shared/clock.js';
import { RUNNER_ID } from '../../agent/domain/virtual-machine.js';
import type { DockerRuntime } from '../../agent/runtime/docker/docker-runtime.js';
import { importImage, removeImages, tinyDisk } from '../harness/disks.js';
import {
  DOCKER_SOCKET,
  SAMPLE_IMAGE,
  VM_DEBIAN,
  VM_RUNNER,
  VM_UEFI,
  containersOf,
  docker,
  makeImage,
} from '../harness/docker.js';
import { eventually } from '../../scripts/eventually.js';
import { makeRuntime } from '../harness/runtime.js';
import { takePorts } from '../harness/worker.js';
import { FIRST_REMAPPED_ID, OwnDocker } from '../rig/own-docker.js';
import { specOf } from '../suites/runtime-suite.js';

const ports = takePorts(5);
const LONG_MS = 180_000;
const GOES = 'gpurent/test-vm-goes:1';
const IDLES = 'gpurent/test-vm-idles:1';
const ODD = 'gpurent/test-vm-odd:1';

let runtime: DockerRuntime;
const made: string[] = [];

beforeAll(async () => {
  runtime = await makeRuntime({ ports });
  await importImage(GOES, { 'disk/disk.raw': tinyDisk('hello and goodbye', 'goes') });
  await importImage(IDLES, { 'disk/disk.raw': tinyDisk('hello', 'idles') });
});
afterEach(async () => {
  for (const id of made.splice(0)) await runtime.remove(id);
});
afterAll(() => removeImages(GOES, IDLES, ODD));

const spec = (image: string, fields: Partial<WorkloadSpec> = {}) =>
  specOf(image, { virtualMachine: true, sshAuthorizedKey: '', memoryMb: 1024, cpuMillis: 1000, ...fields });

async function create(image: string, fields: Partial<WorkloadSpec> = {}): Promise<string> {
  const id = randomUUID();
  made.push(id);
  const wanted = spec(image, fields);
  await runtime.fetchImage(wanted, () => {}, new AbortController().signal);
  await runtime.create(id, 1, wanted);
  return id;
}

/** A qcow2 that stands on another file, as QEMU itself makes one. */
async function overlayOf(file: string): Promise<Buffer> {
  const jobs = new RunnerJobs(new Engine(DOCKER_SOCKET, systemClock), 'test', VM_RUNNER);
  const make = `qemu-img create -q -f qcow2 -o cluster_size=512 -u -b ${file} -F raw /tmp/disk 1M && base64 /tmp/disk`;
  const options = { Image: VM_RUNNER, Entrypoint: ['sh', '-c', make], HostConfig: { NetworkMode: 'none' } };
  const { lines } = await jobs.withContainer(options, (container) => jobs.run(container, LONG_MS));
  return Buffer.from(lines.join(''), 'base64');
}

const said = async (id: string) => (await runtime.tail(id, 1000)).map(({ text }) => text);
const saying = (id: string, text: string, times = 1) =>
  eventually(
    `the console to say "${text}"`,
    async () => (await said(id)).join('\n').split(text).length > times,
    LONG_MS,
  );

it('a guest that ignores the power button is powered off at the deadline', async () => {
  const id = await create(IDLES);
  await saying(id, 'hello');
  await runtime.stop(id);
  expect(await runtime.find(id)).toMatchObject({ state: 'stopped', exitCode: 0, kind: 'vm' });
  expect(await said(id)).toContain('gpurent: the guest has not shut down within 2 seconds and is powered off');
});

it('a guest that is stopped while it comes up is asked, too, or powered off', async () => {
  const id = await create(IDLES);
  await runtime.stop(id);
  const { exitCode } = (await runtime.find(id)) as { exitCode: number };
  // Before the runner itself was up, nothing was on; otherwise it has ended in order. It was killed in no case.
  expect([0, 143]).toContain(exitCode);
  if (exitCode === 0) expect(await said(id)).toContain('gpurent: the machine is off');
});

it('a guest that powers itself off ends its instance, unless that is interactive', async () => {
  const batch = await create(GOES, { interactive: false });
  const ended = await eventually(
    'its end',
    async () => {
      const found = await runtime.find(batch);
      return found.state === 'stopped' && found;
    },
    LONG_MS,
  );
  expect(ended).toMatchObject({ exitCode: 0 });
  const interactive = await create(GOES);
  await saying(interactive, 'hello and goodbye', 2);
  await runtime.stop(interactive);
  expect(await runtime.find(interactive)).toMatchObject({ state: 'stopped', exitCode: 0 });
});

it('a disk with an EFI partition boots by UEFI', async () => {
  const id = await create(VM_UEFI);
  await saying(id, 'small: booted by UEFI');
});

it('the machine’s container has no privilege, mount, network or device of the host', async () => {
  const id = await create(IDLES);
  const { Config, HostConfig, Mounts } = await docker.getContainer(`gpurent-${id}`).inspect();
  expect(Config.User).toBe('64000:64000');
  expect(HostConfig).toMatchObject({
    Privileged: false,
    CapDrop: ['ALL'],
    CapAdd: null,
    SecurityOpt: ['no-new-privileges'],
    NetworkMode: `gpurent-${id}`,
    Memory: 1024 * 1024 * 1024,
    MemorySwap: 1024 * 1024 * 1024,
    NanoCpus: 1_000_000_000,
    Devices: [],
  });
  expect(Mounts).toEqual([]);
});

it('every machine of an image stands on one copy of its disk, and nothing is left of a machine that is removed', async () => {
  const [one, other] = [await create(IDLES), await create(IDLES)];
  const imageOf = async (id: string) => (await containersOf(id))[0]?.ImageID;
  expect(await imageOf(one)).toBe(await imageOf(other));
  await runtime.remove(one);
  expect(await containersOf(one)).toEqual([]);
  expect((await docker.listNetworks()).map(({ Name }) => Name)).not.toContain(`gpurent-${one}`);
  expect(await docker.listContainers({ all: true, filters: { name: ['gpurent-job-'] } })).toEqual([]);
});

it('a machine runs on a Docker that remaps user namespaces, in the host’s own, and again after a stop', async () => {
  const own = await OwnDocker.start({ usernsRemap: true });
  for (const image of [VM_RUNNER, IDLES]) await own.give(image);
  const engine = new Engine(own.socket, systemClock);
  const jobs = new RunnerJobs(engine, randomUUID(), VM_RUNNER);
  const settings = { accelerator: 'tcg', runner: VM_RUNNER, stopSeconds: 1 } as const;
  const support = new VmSupport(engine, jobs, settings, { passthrough: NO_PASSTHROUGH }, systemClock);
  expect(await support.whyUnsupported()).toBeUndefined();

  const remapped = await makeRuntime({ ports: takePorts(4), socket: own.socket });
  const id = randomUUID();
  await remapped.fetchImage(spec(IDLES), () => {}, new AbortController().signal);
  await remapped.create(id, 1, spec(IDLES));
  const console = async () => (await remapped.tail(id, 1000)).map(({ text }) => text).join('\n');
  const machine = own.docker.getContainer(`gpurent-${id}`);
  for (let boots = 1; boots <= 2; boots++) {
    await eventually('the console', async () => (await console()).split('hello').length > boots, LONG_MS);
    const { HostConfig, State } = await machine.inspect();
    expect(HostConfig.UsernsMode).toBe('host');
    const ids = (await readFile(`/proc/${State.Pid}/uid_map`, 'utf8')).trim().split(/\s+/);
    expect(ids).toEqual((await readFile('/proc/self/uid_map', 'utf8')).trim().split(/\s+/));
    const owners = await statusOfProcesses(State.Pid);
    expect(owners).toEqual([String(FIRST_REMAPPED_ID + RUNNER_ID)]);
    await remapped.stop(id);
    expect(await remapped.find(id)).toMatchObject({ state: 'stopped', exitCode: 0 });
    if (boots === 1) await remapped.start(id);
  }
  await remapped.remove(id);
  await own.remove();
});

/** The accounts of the host that the processes below Docker's init have. */
async function statusOfProcesses(init: number): Promise<string[]> {
  const children = (await readFile(`/proc/${init}/task/${init}/children`, 'utf8')).trim().split(' ');
  const statuses = await Promise.all(children.map((pid) => readFile(`/proc/${pid}/status`, 'utf8')));
  return [...new Set(statuses.map((text) => /^Uid:\s+(\d+)/m.exec(text)?.[1] ?? ''))];
}

describe('a host runs no machines, and says why,', () => {
  const support = async (runner: string, accelerator: 'kvm' | 'tcg' | null = 'tcg') => {
    const engine = new Engine(DOCKER_SOCKET, systemClock);
    const jobs = new RunnerJobs(engine, randomUUID(), runner);
    const gpus = { passthrough: NO_PASSTHROUGH };
    return new VmSupport(engine, jobs, { accelerator, runner, stopSeconds: 1 }, gpus, systemClock).whyUnsupported();
  };

  it('that is told not to', async () => {
    expect(await support(VM_RUNNER, null)).toMatch(/GPURENT_AGENT_VMS is "off"/);
  });

  it('that lacks what they run in', async () => {
    expect(await support('localhost/gpurent/none:1')).toMatch(
      /is not here: run scripts\/build-vm-runner, see "Virtual machines"/,
    );
  });

  it.each([
    ['ends well and has booted nothing', 'echo nothing', /did not boot on tcg: nothing/],
    ['fails after it has booted', 'echo "gpurent-probe: booted"; exit 1', /did not boot on tcg/],
  ])('whose machine %s', async (_, command, reason) => {
    await removeImages(ODD);
    const entrypoint = JSON.stringify(['sh', '-c', command]);
    expect(await support(await makeImage('gpurent/test-vm-odd', [`ENTRYPOINT ${entrypoint}`]))).toMatch(reason);
  });

  it('whose GPUs cannot be given to one', async () => {
    const engine = new Engine(DOCKER_SOCKET, systemClock);
    const passthrough = { ...NO_PASSTHROUGH, whyUnavailable: async () => 'there is no IOMMU' };
    const settings = { accelerator: 'tcg', runner: VM_RUNNER, stopSeconds: 1 } as const;
    const jobs = new RunnerJobs(engine, randomUUID(), VM_RUNNER);
    const reason = await new VmSupport(engine, jobs, settings, { passthrough }, systemClock).whyUnsupported();
    expect(reason).toBe('GPUs cannot be given to virtual machines: there is no IOMMU');
  });
});

describe('no machine is made, and its renter is told why, of an image', () => {
  const garbage = Buffer.alloc(1024 * 1024, 'x');
  const broken = Buffer.concat([Buffer.from('QFI\xfb\0\0\0\x03', 'latin1'), garbage]);
  const large = tinyDisk('', 'idles');
  it.each([
    ['whose disk is corrupt', { 'disk/disk.qcow2': broken }, /its disk cannot be read/],
    [
      'whose disk holds nothing that boots',
      { 'disk/disk.raw': garbage },
      /neither a boot sector nor a partition table/,
    ],
    ['that holds two disks', { 'disk/a.raw': large, 'disk/b.raw': large }, /something beside one plain file/],
    ['that holds no disk', { 'etc/passwd': garbage }, /it has no folder \/disk/],
  ])('%s', async (_, files, reason) => {
    await removeImages(ODD);
    await importImage(ODD, files);
    await expect(create(ODD)).rejects.toMatchObject({
      code: 'IMAGE_UNAVAILABLE',
      message: expect.stringMatching(reason) as string,
    });
    expect(await runtime.list()).toEqual([]);
    expect(await docker.listContainers({ all: true, filters: { name: ['gpurent-job-'] } })).toEqual([]);
  });

  it('whose disk stands on a file of the host, which is never looked at', async () => {
    await removeImages(ODD);
    await importImage(ODD, { 'disk/disk.qcow2': await overlayOf('/etc/passwd') });
    await expect(create(ODD)).rejects.toThrow(/its disk is only a part: it names another file/);
  });

  it('that is none of a machine', async () => {
    await expect(create(SAMPLE_IMAGE)).rejects.toThrow(/it has no folder \/disk/);
  });

  it('whose disk is larger than what was rented', async () => {
    await removeImages(ODD);
    await importImage(ODD, { 'disk/disk.raw': tinyDisk('', 'idles') });
    await expect(create(ODD, { diskGb: 0 })).rejects.toThrow(/holds a file of 1 GB, more than was rented/);
    await expect(create(VM_DEBIAN, { diskGb: 1 })).rejects.toThrow(/deploy with disk_gb 2 or more/);
  });
});
