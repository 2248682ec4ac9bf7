/** What a host without GPUs says of itself. */
export const INVENTORY = {
  name: 'host',
  region: 'test',
  publicAddress: '203.0.113.7',
  arch: 'x86_64',
  cpuModel: '',
  cpuCores: 8,
  memoryMb: 65_536,
  diskGb: 1_000,
  diskQuota: 'enforced',
  driverVersion: '',
  cudaVersion: '',
  vmCapable: false,
  gpuReleaseSupported: true,
  accessReplaceable: true,
  gpus: [],
};
