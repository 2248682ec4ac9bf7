import { join } from 'node:path';
import type { Clock } from '../../shared/clock.js';
import type { AgentConfig } from '../config.js';
import { RUNNER_ID } from '../domain/virtual-machine.js';
import { holdersOf } from './passthrough/device-holders.js';
import { GpuStateFile } from './passthrough/gpu-state-file.js';
import { VfioGpus } from './passthrough/vfio-gpus.js';
import { PciBus } from './passthrough/pci-bus.js';
import type { GpuDriver } from './gpus/driver.js';
import { kernelGpus } from './nvidia/kernel-list.js';
import { NvidiaGpus } from './nvidia/nvidia.js';
import { SimulatedGpus } from './gpus/simulated.js';

/**
 * Creates the driver of the GPUs that this host rents out. Only an enrolled agent passes `warn`; without it, the driver does not write
 * its state file, and fails if no GPU answers.
 */
export function gpuDriver(
  { gpus, name, stateDir }: AgentConfig,
  clock: Clock,
  warn: ((message: string) => void) | null = null,
): GpuDriver {
  if (gpus.kind === 'simulated') return new SimulatedGpus(gpus.count, name);
  const notes = new GpuStateFile(join(stateDir, 'gpus.json'), warn);
  const sources = { remembered: () => notes.read(), listed: () => kernelGpus(), mustAnswer: warn === null };
  return new VfioGpus({
    gpus: new NvidiaGpus(clock, gpus.attach, sources),
    bus: new PciBus(),
    notes,
    holders: (slots) => holdersOf(slots),
    runnerId: RUNNER_ID,
    clock,
  });
}
