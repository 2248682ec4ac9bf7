import { createHash } from 'node:crypto';
import type { GpuAttachment, GpuDriver, GpuInventory, GpuReading, Passthrough } from './driver.js';
import { NO_PASSTHROUGH } from './no-passthrough.js';

const MEMORY_MB = 24_576;

/** Simulated GPUs, to try gpurent out; a host has the same ones at every start. */
export class SimulatedGpus implements GpuDriver {
  constructor(
    private readonly count: number,
    private readonly seed: string,
  ) {}

  readonly passthrough: Passthrough = NO_PASSTHROUGH;

  async inventory(): Promise<GpuInventory> {
    const gpus = Array.from({ length: this.count }, (_, index) => ({
      uuid: this.uuid(index),
      index,
      model: 'Simulated GPU',
      memoryMb: MEMORY_MB,
      healthy: true,
      reason: '',
      processes: [],
      pciAddress: '',
    }));
    return { gpus, driverVersion: '', cudaVersion: '' };
  }

  /** Nothing computes on a simulated GPU. */
  async use(): Promise<ReadonlyMap<string, GpuReading>> {
    const unused = {
      usePercent: 0,
      memoryUsedBytes: 0,
      memoryTotalBytes: MEMORY_MB * 1024 * 1024,
      powerWatts: null,
      temperatureCelsius: null,
    };
    return new Map(Array.from({ length: this.count }, (_, index) => [this.uuid(index), unused]));
  }

  attachment(uuids: readonly string[]): GpuAttachment {
    return { env: [`NVIDIA_VISIBLE_DEVICES=${uuids.join(',')}`], deviceRequests: [] };
  }

  private uuid(index: number): string {
    const hex = createHash('sha256').update(`${this.seed}/${index}`).digest('hex');
    return `GPU-${[hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join('-')}`;
  }
}
