import { randomUUID } from 'node:crypto';

/** What a fake host says that it has. */
export interface FakeInventory {
  name?: string;
  publicAddress?: string;
  gpus?: number;
  diskGb?: number;
  diskQuota?: string;
  vmCapable?: boolean;
  cudaVersion?: string;
  accessReplaceable?: boolean;
  /** In the place of new ones. */
  givenGpus?: readonly object[];
}

/** Returns the UUID of a GPU of a fake host, in the form of NVIDIA's driver. */
export function fakeGpuUuid(host: number, index: number): string {
  return `GPU-${String(host).padStart(8, '0')}-0000-4000-8000-${String(index).padStart(12, '0')}`;
}

/** The inventory in the words of the wire. */
export function inventoryOf({
  name = 'fake',
  publicAddress = '203.0.113.7',
  gpus = 2,
  diskGb = 1000,
  diskQuota = 'enforced',
  vmCapable = false,
  cudaVersion = '12.4',
  accessReplaceable = true,
  givenGpus,
}: FakeInventory): Record<string, unknown> {
  return {
    name,
    region: 'test',
    publicAddress,
    arch: 'x86_64',
    cpuModel: 'Fake CPU',
    cpuCores: 16,
    memoryMb: 65_536,
    diskGb,
    diskQuota,
    vmCapable,
    driverVersion: '550.54',
    cudaVersion,
    gpuReleaseSupported: true,
    accessReplaceable,
    gpus:
      givenGpus ??
      Array.from({ length: gpus }, (_, index) => ({
        uuid: `GPU-${randomUUID()}`,
        index,
        model: 'Fake GPU',
        memoryMb: 24_576,
        healthy: true,
        reason: '',
      })),
  };
}
