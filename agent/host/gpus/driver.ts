import type { DeviceRequest } from 'dockerode';

export interface Gpu {
  uuid: string;
  index: number;
  model: string;
  memoryMb: number;
  /** Whether its memory is a part of the machine's, which is then not sold as instances' memory. */
  sharesMemory?: boolean;
  /** Whether the driver has listed it before and does not list it now. */
  missing?: boolean;
  healthy: boolean;
  /** Why it is not healthy; empty if it is healthy. */
  reason: string;
  /** The compute processes on it, with process ids of the host. */
  processes: GpuProcess[];
  /** The address of its slot, for example `0000:3b:00`; empty if it has no slot. */
  pciAddress: string;
}

export interface GpuInventory {
  gpus: Gpu[];
  driverVersion: string;
  cudaVersion: string;
}

export interface GpuAttachment {
  /** Overrides the variables of the image and the renter. */
  env: string[];
  deviceRequests: DeviceRequest[];
}

/** The devices that the container of a virtual machine gets for its GPUs. */
export interface PassedDevices {
  /** Device files of the host. */
  paths: string[];
  /** PCI addresses of the functions that the guest gets. */
  addresses: string[];
}

/** Moves whole GPUs into virtual machines and back. */
export interface Passthrough {
  /** Returns why this host cannot pass its GPUs through, in words for the host owner; undefined if it can. */
  whyUnavailable(): Promise<string | undefined>;
  /** Returns the devices of these GPUs. Throws Failure GPUS_UNAVAILABLE. */
  devices(uuids: readonly string[]): Promise<PassedDevices>;
  /** Takes GPUs from the host's driver. Throws Failure GPUS_UNAVAILABLE; the host then keeps them. */
  take(uuids: readonly string[]): Promise<void>;
  /** Returns taken GPUs to the host's driver and checks that they work. Throws Failure GPUS_UNAVAILABLE. */
  giveBack(uuids: readonly string[]): Promise<void>;
  /** Returns the UUIDs of the GPUs that the host's driver does not have now. */
  taken(): Promise<string[]>;
}

/** What a GPU does now; null: the driver does not tell. */
export interface GpuReading {
  usePercent: number | null;
  memoryUsedBytes: number | null;
  memoryTotalBytes: number | null;
  powerWatts: number | null;
  temperatureCelsius: number | null;
}

/** The host's GPUs of one kind. */
export interface GpuDriver {
  readonly passthrough: Passthrough;
  /** Reads the GPUs. Throws SetupError if that fails. */
  inventory(): Promise<GpuInventory>;
  /** Returns what the GPUs do now, by UUID and in the order of their indexes; without those that the driver does not show. */
  use(): Promise<ReadonlyMap<string, GpuReading>>;
  /** Returns the settings with which Docker gives a container exactly these GPUs. */
  attachment(uuids: readonly string[]): GpuAttachment;
}

export interface GpuProcess {
  pid: number;
  name: string;
}
