import { readFile, statfs } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { networkInterfaces, totalmem } from 'node:os';
import type { cpu as readCpu } from 'systeminformation';
import { MIB } from '../../shared/bytes.js';
import type { Inventory } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { AgentConfig } from '../config.js';
import type { Gpu, GpuDriver } from './gpus/driver.js';
import { uplink } from './network/uplink.js';

/** The rest of the library is large, and the agent needs nothing of it. */
const { cpu: cpuOf } = createRequire(import.meta.url)('systeminformation/lib/cpu') as { cpu: typeof readCpu };

const RENTED_SHARE = 0.9;
/** The share of Docker's file system that stays free: below it, the host accepts no new instances. */
const RESERVED_SHARE = 0.05;
const GB = 1e9;

/** Facts about Docker on this host. */
export interface DockerFacts {
  /** Its data root. */
  root: string;
  hasDiskQuota: boolean;
  runsVms: boolean;
}

/** Reads the hardware and the abilities of this host. */
export async function readInventory(config: AgentConfig, gpus: GpuDriver, docker: DockerFacts): Promise<Inventory> {
  const [cpu, diskBytes, gpuInventory, address] = await Promise.all([
    cpuOf(),
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
    memoryMb: instancesMemoryMb(list),
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

/** Returns the memory for instances: the machine's, less what is sold as memory of GPUs. Less than one MiB is never told. */
function instancesMemoryMb(gpus: readonly Gpu[]): number {
  const shared = gpus.filter(({ sharesMemory }) => sharesMemory).reduce((sum, { memoryMb }) => sum + memoryMb, 0);
  return Math.max(Math.floor(totalmem() / MIB) - shared, 1);
}

/** Returns the address at which renters reach this host: the setting, or the IPv4 address of the default interface. */
export async function publicAddressOf({ publicAddress }: AgentConfig): Promise<string> {
  if (publicAddress !== '') return publicAddress;
  const name = await uplink().catch(() => undefined);
  const found = networkInterfaces()[name ?? '']?.find(({ family }) => family === 'IPv4');
  return found?.address ?? '127.0.0.1';
}

async function sizeOf(path: string): Promise<number> {
  const { blocks, bsize } = await statfs(path);
  return blocks * bsize;
}

/** Returns the free space of Docker's file system in whole GB of 10^9 bytes, less the part reserved for images, logs and journals. */
export async function diskFreeGb(dockerRoot: string): Promise<number> {
  const { blocks, bavail, bsize } = await statfs(dockerRoot);
  return Math.max(Math.floor((bavail * bsize - blocks * bsize * RESERVED_SHARE) / GB), 0);
}

/** Returns how many bytes the agent can still write on the file system of a path. */
export async function diskFreeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}

/** Returns the free share of a file system, from 0 to 1. */
export async function freeShareOf(path: string): Promise<number> {
  const { blocks, bavail } = await statfs(path);
  return bavail / blocks;
}

/** Reads the boot id. It changes when the kernel boots and, if this host is a system container, when its first process starts. */
export async function readBootId(): Promise<string> {
  const [kernel, init] = await Promise.all(
    ['/proc/sys/kernel/random/boot_id', '/proc/1/stat'].map((path) => readFile(path, 'utf8')),
  );
  return `${kernel?.trim()}/${startTimeIn(init ?? '')}`;
}

/** Returns field 22 of proc_pid_stat(5), in ticks. Counts from the end of field 2, a name in parentheses that can contain spaces. */
function startTimeIn(stat: string): string {
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}
