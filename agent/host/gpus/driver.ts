import type { DeviceRequest } from 'dockerode';
import type { GpuProcess } from './nvidia-report.js';

export interface Gpu {
  uuid: string;
  index: number;
  model: string;
  memoryMb: number;
  healthy: boolean;
  /** Why it is not healthy; otherwise empty. */
  reason: string;
  /** What computes on it, in process ids of the host. */
  processes: GpuProcess[];
}

export interface GpuInventory {
  gpus: Gpu[];
  driverVersion: string;
  cudaVersion: string;
}

export interface GpuAttachment {
  /** Stands over what image and renter say. */
  env: string[];
  deviceRequests: DeviceRequest[];
}

/** The host's GPUs of one kind. */
export interface GpuDriver {
  /** Throws SetupError when they cannot be read. */
  inventory(): Promise<GpuInventory>;
  /** What makes Docker give a container exactly these. */
  attachment(uuids: readonly string[]): GpuAttachment;
}
