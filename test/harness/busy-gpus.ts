import type { GpuProcess } from '../../agent/host/gpus/nvidia-report.js';
import type { GpuInventory } from '../../agent/host/gpus/driver.js';
import { SimulatedGpus } from '../../agent/host/gpus/simulated.js';

/** Simulated GPUs on which something may compute. */
export class BusyGpus extends SimulatedGpus {
  /** By UUID. */
  readonly processes = new Map<string, GpuProcess[]>();

  override async inventory(): Promise<GpuInventory> {
    const inventory = await super.inventory();
    return {
      ...inventory,
      gpus: inventory.gpus.map((gpu) => ({ ...gpu, processes: this.processes.get(gpu.uuid) ?? [] })),
    };
  }
}
