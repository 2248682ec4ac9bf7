import type { DeviceRequest } from 'dockerode';

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
  /** Of its slot, such as `0000:3b:00`; empty for one that is in none. */
  pciAddress: string;
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

/** What a virtual machine's container is given for its GPUs. */
export interface PassedDevices {
  /** Of the host. */
  paths: string[];
  /** What the guest gets, by PCI address. */
  addresses: string[];
}

/** How whole GPUs get into virtual machines and back. */
export interface Passthrough {
  /** Why none could, in words for the host's owner; undefined where they can. */
  obstacle(): Promise<string | undefined>;
  /** What these come to. Throws Failure GPUS_UNAVAILABLE. */
  devices(uuids: readonly string[]): Promise<PassedDevices>;
  /** Takes them from the host. Throws Failure GPUS_UNAVAILABLE, and then the host has them still. */
  take(uuids: readonly string[]): Promise<void>;
  /** Gives the host back those that were taken, and sees that they work. Throws Failure GPUS_UNAVAILABLE. */
  giveBack(uuids: readonly string[]): Promise<void>;
  /** Those that the host does not have at this moment. */
  taken(): Promise<string[]>;
}

/** The host's GPUs of one kind. */
export interface GpuDriver {
  readonly passthrough: Passthrough;
  /** Throws SetupError when they cannot be read. */
  inventory(): Promise<GpuInventory>;
  /** What makes Docker give a container exactly these. */
  attachment(uuids: readonly string[]): GpuAttachment;
}

export interface GpuProcess {
  pid: number;
  name: string;
}
