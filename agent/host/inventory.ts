import { readFile, statfs } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import si from 'systeminformation';
import type { Inventory } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { AgentConfig } from '../config.js';
import type { GpuDriver } from './gpus/driver.js';

const RENTED_SHARE = 0.9;
const GB = 1e9;
const MIB = 1024 * 1024;

/** What this host is and has. `dockerRoot` is where Docker keeps its containers. */
export async function readInventory(config: AgentConfig, gpus: GpuDriver, dockerRoot: string): Promise<Inventory> {
  const [cpu, memory, diskBytes, gpuInventory, address] = await Promise.all([
    si.cpu(),
    si.mem(),
    sizeOf(dockerRoot),
    gpus.inventory(),
    config.publicAddress || defaultAddress(),
  ]);
  const { gpus: list, driverVersion, cudaVersion } = gpuInventory;
  return {
    name: config.name,
    region: config.region,
    publicAddress: address,
    arch: process.arch === 'x64' ? 'x86_64' : process.arch,
    cpuModel: `${cpu.manufacturer} ${cpu.brand}`.trim(),
    cpuCores: cpu.cores,
    memoryMb: Math.floor(memory.total / MIB),
    diskGb: config.diskGb ?? Math.floor((diskBytes * RENTED_SHARE) / GB),
    diskQuota: 'none',
    driverVersion,
    cudaVersion,
    vmCapable: false,
    gpuReleaseSupported: true,
    gpus: list,
  };
}

async function defaultAddress(): Promise<string> {
  const name = await si.networkInterfaceDefault();
  const found = networkInterfaces()[name]?.find(({ family }) => family === 'IPv4');
  return found?.address ?? '127.0.0.1';
}

async function sizeOf(path: string): Promise<number> {
  const { blocks, bsize } = await statfs(path);
  return blocks * bsize;
}

/** Changes when the kernel boots. */
export async function readBootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
}
