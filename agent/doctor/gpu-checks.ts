import { execFile } from 'node:child_process';
import { access, readFile, readdir, stat } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { Clock } from '../../shared/clock.js';
import type { AgentConfig } from '../config.js';
import type { GpuTestResult } from '../domain/gpu-verdict.js';
import type { GpuDriver } from '../host/gpus/driver.js';
import { Engine } from '../runtime/docker/engine.js';
import { bad, doubtful, good, type Check, type Finding } from './finding.js';
import { judgeGpuStart, judgeToolkit } from './toolkit.js';

const run = promisify(execFile);
const CDI_FOLDERS = ['/etc/cdi', '/var/run/cdi'];
const HOOKS = ['nvidia-container-runtime-hook', 'nvidia-container-toolkit'];

/** Returns the checks of the GPUs and, for NVIDIA, of the container toolkit and the kernel log. */
export function gpuChecks(
  config: AgentConfig,
  gpus: GpuDriver,
  clock: Clock,
  testGpus: () => Promise<GpuTestResult>,
): Check[] {
  const inventory: Check = { name: 'GPUs', look: () => checkGpus(gpus) };
  if (config.gpus.kind !== 'nvidia') return [inventory];
  const { attach } = config.gpus;
  return [
    inventory,
    { name: 'container toolkit', look: async () => [await checkToolkit(config, attach, clock)] },
    { name: 'test container', look: async () => [judgeGpuStart(await testGpus())] },
    { name: 'device links', look: async () => [await checkDeviceLinks(config, clock)] },
    { name: 'kernel log', look: async () => [await checkKernelLog()] },
  ];
}

async function checkGpus(driver: GpuDriver): Promise<Finding[]> {
  const { gpus, driverVersion, cudaVersion } = await driver.inventory();
  if (gpus.length === 0) return [bad('none found', 'run nvidia-smi to see why')];
  const versions = good(
    `${gpus.length} ${gpus.length === 1 ? 'GPU' : 'GPUs'}, driver ${driverVersion || 'none'}, CUDA ${cudaVersion || 'none'}`,
  );
  return [
    versions,
    ...gpus.map(({ index, uuid, model, healthy, reason }) =>
      healthy
        ? good(`${index}: ${model} ${uuid}`)
        : bad(`${index}: ${model} ${uuid}: ${reason}`, 'it is not rented out until this is fixed'),
    ),
  ];
}

async function checkToolkit(config: AgentConfig, attach: string, clock: Clock): Promise<Finding> {
  if (attach === 'cdi') {
    const { stdout } = await run('nvidia-ctk', ['cdi', 'list']).catch(() => ({ stdout: '' }));
    return stdout.includes('nvidia.com/gpu=GPU-')
      ? good('CDI lists the GPUs by UUID')
      : bad(
          'CDI does not list the GPUs by UUID',
          'run: nvidia-ctk cdi generate --device-name-strategy=uuid --output=/etc/cdi/nvidia.yaml',
        );
  }
  const { Runtimes = {}, ServerVersion } = await new Engine(config.dockerSocket, clock).info();
  return judgeToolkit({
    docker: ServerVersion,
    hasRuntime: 'nvidia' in Runtimes,
    hookSince: await sinceOf(await pathOf(...HOOKS)),
    dockerSince: await sinceOf(config.dockerPidFile),
    hasCli: (await pathOf('nvidia-container-cli')) !== null,
    config: await readFile('/etc/nvidia-container-runtime/config.toml', 'utf8').catch(() => ''),
    hasCdi: (await Promise.all(CDI_FOLDERS.map((folder) => readdir(folder).catch(() => [])))).flat().some(isNvidias),
  });
}

const isNvidias = (name: string) => name.includes('nvidia');

/** Returns the path of the first of these programs; null: there is none. */
async function pathOf(...names: readonly string[]): Promise<string | null> {
  const look = ['-c', names.map((name) => `command -v ${name}`).join(' || ')];
  const { stdout } = await run('sh', look).catch(() => ({ stdout: '' }));
  return stdout.trim() || null;
}

/** Returns when a file was put in its place; null: it is not there. */
async function sinceOf(file: string | null): Promise<number | null> {
  if (file === null) return null;
  return stat(file).then(
    ({ ctimeMs }) => ctimeMs,
    () => null,
  );
}

/**
 * Checks the links in `/dev/char`. Without them, and where systemd manages cgroups, `systemctl daemon-reload` takes the GPUs
 * from
 * running containers.
 */
async function checkDeviceLinks(config: AgentConfig, clock: Clock): Promise<Finding> {
  const { CgroupDriver } = await new Engine(config.dockerSocket, clock).info();
  if (CgroupDriver !== 'systemd') return good('not needed here');
  // 195 is the major device number of NVIDIA.
  const isLinked = await access('/dev/char/195:0').then(
    () => true,
    () => false,
  );
  return isLinked
    ? good('exist')
    : doubtful(
        'are missing: a reload of systemd would take the GPUs from running containers',
        'run at every boot: nvidia-ctk system create-dev-char-symlinks --create-all',
      );
}

async function checkKernelLog(): Promise<Finding> {
  const isReadable = await run('dmesg', [], { maxBuffer: 64 * 1024 * 1024 }).then(
    () => true,
    () => false,
  );
  return isReadable
    ? good('can be read for GPU faults')
    : doubtful('cannot be read, so a faulty GPU may go unnoticed', 'install util-linux, and run the agent as root');
}
