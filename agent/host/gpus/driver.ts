import type { DeviceRequest } from 'dockerode';

export interface Gpu {
  uuid: string;
  index: number;
  model: string;
  memoryMb: number;
  healthy: boolean;
  /** Why it is not healthy; otherwise empty. */
  reason: string;
}

export interface GpuInventory {
  gpus: Gpu[];
  driverVersion: string;
  cudaVersion: string;
}

/** The host's GPUs of one kind. */
export interface GpuDriver {
  /** Throws SetupError when they cannot be read. */
  inventory(): Promise<GpuInventory>;
  /** What makes Docker give a container exactly these. */
  attachment(uuids: readonly string[]): { env: string[]; deviceRequests: DeviceRequest[] };
}
