import { readFile, statfs } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import si from 'systeminformation';
import type { Inventory } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { AgentConfig } from '../config.js';
import type { GpuDriver } from './gpus/driver.js';

const RENTED_SHARE = 0.9;
/** Below this, nothing new is taken. */
const RESERVED_SHARE = 0.05;
const GB = 1e9;
const MIB = 1024 * 1024;

/** What Docker on this host is like, and can do. */
export interface DockerFacts {
  /** Where it keeps its containers. */
  root: string;
  hasDiskQuota: boolean;
  runsVms: boolean;
}

/** What this host is and has. */
export async function readInventory(config: AgentConfig, gpus: GpuDriver, docker: DockerFacts): Promise<Inventory> {
  const [cpu, memory, diskBytes, gpuInventory, address] = await Promise.all([
    si.cpu(),
    si.mem(),
    sizeOf(docker.root),
    gpus.inventory(),
    publicAddressOf(config),
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
    diskQuota: docker.hasDiskQuota ? 'enforced' : 'none',
    driverVersion,
    cudaVersion,
    vmCapable: docker.runsVms,
    gpuReleaseSupported: true,
    accessReplaceable: true,
    gpus: list,
  };
}

/** Where renters reach this host. */
export async function publicAddressOf({ publicAddress }: AgentConfig): Promise<string> {
  if (publicAddress !== '') return publicAddress;
  const name = await si.networkInterfaceDefault();
  const found = networkInterfaces()[name]?.find(({ family }) => family === 'IPv4');
  return found?.address ?? '127.0.0.1';
}

async function sizeOf(path: string): Promise<number> {
  const { blocks, bsize } = await statfs(path);
  return blocks * bsize;
}

/** What is free of Docker's file system beyond what is kept for its host: images, logs, journals. In whole GB of 10^9 bytes. */
export async function diskFreeGb(dockerRoot: string): Promise<number> {
  const { blocks, bavail, bsize } = await statfs(dockerRoot);
  return Math.max(Math.floor((bavail * bsize - blocks * bsize * RESERVED_SHARE) / GB), 0);
}

/** How much of a file system is free, 0 to 1. */
export async function freeShareOf(path: string): Promise<number> {
  const { blocks, bavail } = await statfs(path);
  return bavail / blocks;
}

/** Changes when the kernel boots, and where this host is a system container of another: when its own first process starts. */
export async function readBootId(): Promise<string> {
  const [kernel, init] = await Promise.all(
    ['/proc/sys/kernel/random/boot_id', '/proc/1/stat'].map((path) => readFile(path, 'utf8')),
  );
  return `${kernel?.trim()}/${startTimeIn(init ?? '')}`;
}

/** Field 22 of proc_pid_stat(5), in ticks. The second is a name in parentheses, which may hold spaces. */
function startTimeIn(stat: string): string {
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}
