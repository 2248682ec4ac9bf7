import { Failure } from '../../agent/domain/failure.js';
import type { GpuInventory, Passthrough, GpuProcess } from '../../agent/host/gpus/driver.js';
import { SimulatedGpus } from '../../agent/host/gpus/simulated.js';

/** Simulated GPUs on which something may compute, and which a virtual machine may have. */
export class BusyGpus extends SimulatedGpus {
  /** By UUID. */
  readonly processes = new Map<string, GpuProcess[]>();

  /** Those that the host does not have. */
  readonly taken = new Set<string>();
  /** Whether they do not come back. */
  stuck = false;
  override readonly passthrough: Passthrough = {
    whyUnavailable: async () => undefined,
    devices: async () => ({ paths: [], addresses: [] }),
    take: async (uuids) => uuids.forEach((uuid) => this.taken.add(uuid)),
    giveBack: async (uuids) => {
      if (this.stuck && uuids.some((uuid) => this.taken.has(uuid)))
        throw new Failure('GPUS_UNAVAILABLE', 'it has not come back');
      for (const uuid of uuids) this.taken.delete(uuid);
    },
    taken: async () => [...this.taken],
  };

  override async inventory(): Promise<GpuInventory> {
    const inventory = await super.inventory();
    return {
      ...inventory,
      gpus: inventory.gpus.map((gpu) => ({ ...gpu, processes: this.processes.get(gpu.uuid) ?? [] })),
    };
  }
}
