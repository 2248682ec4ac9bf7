import { execFile } from 'node:child_process';
import { access } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { Clock } from '../../shared/clock.js';
import type { AgentConfig } from '../config.js';
import type { GpuDriver } from '../host/gpus/driver.js';
import { Engine } from '../runtime/docker/engine.js';
import { bad, doubtful, good, type Check, type Finding } from './finding.js';

const run = promisify(execFile);
const HOOKS = ['nvidia-container-runtime-hook', 'nvidia-container-toolkit'];

/** What of the GPUs, and of what gives them to containers, has to be right. */
export function gpuChecks(config: AgentConfig, gpus: GpuDriver, clock: Clock): Check[] {
  const inventory: Check = { name: 'GPUs', look: () => checkGpus(gpus) };
  if (config.gpus.kind !== 'nvidia') return [inventory];
  const { attach } = config.gpus;
  return [
    inventory,
    { name: 'container toolkit', look: async () => [await checkToolkit(config, attach, clock)] },
    { name: 'device links', look: async () => [await checkDeviceLinks(config, clock)] },
    { name: 'kernel log', look: async () => [await checkKernelLog()] },
  ];
}

async function checkGpus(driver: GpuDriver): Promise<Finding[]> {
  const { gpus, driverVersion, cudaVersion } = await driver.inventory();
  if (gpus.length === 0) return [bad('there are none', 'see what nvidia-smi says')];
  const versions = good(`${gpus.length} GPUs, driver ${driverVersion || 'none'}, CUDA ${cudaVersion || 'none'}`);
  return [
    versions,
    ...gpus.map(({ index, uuid, model, healthy, reason }) =>
      healthy
        ? good(`${index}: ${model} ${uuid}`)
        : bad(`${index}: ${model} ${uuid}: ${reason}`, 'it is not rented out until this is mended'),
    ),
  ];
}

async function checkToolkit(config: AgentConfig, attach: string, clock: Clock): Promise<Finding> {
  if (attach === 'cdi') {
    const { stdout } = await run('nvidia-ctk', ['cdi', 'list']).catch(() => ({ stdout: '' }));
    return stdout.includes('nvidia.com/gpu=GPU-')
      ? good('CDI knows the GPUs by UUID')
      : bad(
          'CDI does not know the GPUs by UUID',
          'nvidia-ctk cdi generate --device-name-strategy=uuid --output=/etc/cdi/nvidia.yaml',
        );
  }
  const { Runtimes = {} } = await new Engine(config.dockerSocket, clock).info();
  const found = await run('sh', ['-c', HOOKS.map((name) => `command -v ${name}`).join(' || ')]).then(
    () => true,
    () => false,
  );
  return 'nvidia' in Runtimes || found
    ? good('Docker can give GPUs to containers')
    : bad(
        'Docker cannot give GPUs to containers',
        'install nvidia-container-toolkit, then: nvidia-ctk runtime configure --runtime=docker, and restart Docker',
      );
}

/** Without them, `systemctl daemon-reload` takes the GPUs away from containers that run, where systemd manages cgroups. */
async function checkDeviceLinks(config: AgentConfig, clock: Clock): Promise<Finding> {
  const { CgroupDriver } = await new Engine(config.dockerSocket, clock).info();
  if (CgroupDriver !== 'systemd') return good('not needed here');
  // 195 is the number of NVIDIA's devices.
  const isLinked = await access('/dev/char/195:0').then(
    () => true,
    () => false,
  );
  return isLinked
    ? good('are there')
    : doubtful(
        'are missing: a reload of systemd would take the GPUs from containers that run',
        'nvidia-ctk system create-dev-char-symlinks --create-all, at every boot',
      );
}

async function checkKernelLog(): Promise<Finding> {
  const isReadable = await run('dmesg', [], { maxBuffer: 64 * 1024 * 1024 }).then(
    () => true,
    () => false,
  );
  return isReadable
    ? good('can be read for faults of GPUs')
    : doubtful('cannot be read, so a broken GPU may not be noticed', 'install util-linux, and run the agent as root');
}
