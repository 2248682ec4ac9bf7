import { closeSync, constants, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import {
  cpuLimit,
  numberNamed,
  openConnections,
  parseCgroups,
  parseCpuMax,
  parseInterfaces,
  parseTcpCounters,
  wholeNumber,
  type CgroupPaths,
  type TcpCounters,
} from '../domain/kernel-files.js';
import type { LocatedWorkload } from '../runtime/workload.js';

/** What the kernel's accounts of a workload say; null: that one cannot be read. */
export interface Accounts {
  /** Counts from the start of the run. */
  cpuUs: number | null;
  cpuLimitMillis: number | null;
  memoryUsedBytes: number | null;
  memoryLimitBytes: number | null;
  /** Count from the start of the run. */
  networkInBytes: number | null;
  networkOutBytes: number | null;
  sshSessions: number | null;
  portConnections: number | null;
  /** Counts from the start of the run, connections from within the workload, too. */
  connectionsOpened: number | null;
}

/** Where the kernel shows its accounts. Tests show others. */
export interface KernelPaths {
  processes: string;
  cgroups: string;
}

const KERNEL: KernelPaths = { processes: '/proc', cgroups: '/sys/fs/cgroup' };
/** A cgroup without a limit of its own has the highest number of pages in version 1. */
const NO_LIMIT_BYTES = 2 ** 60;
const SMALL_FILE_BYTES = 16 * 1024;
/** About 1,700 sockets. Where a workload has more, their number is not measured: reading all of them would cost the host too much. */
const SOCKETS_BYTES = 256 * 1024;

/**
 * Reads what the kernel has counted of a running workload, from the host's own files. Returns undefined if the process is not the
 * workload's any more. The reads are synchronous, because such files never wait for a disk. The renter is root in the workload and can
 * make some numbers wrong, but only its own.
 */
export function readAccounts(located: LocatedWorkload, kernel = KERNEL): Accounts | undefined {
  const { pid, containerId } = located;
  const inProcess = (path: string, limit = SMALL_FILE_BYTES) =>
    readKernelFile(join(kernel.processes, String(pid), path), limit);
  const cgroups = parseCgroups(inProcess('cgroup') ?? '', containerId);
  if (!cgroups) return undefined;
  const tcp = parseTcpCounters(inProcess('net/snmp') ?? '');
  const network = parseInterfaces(inProcess('net/dev') ?? '');
  return {
    ...readCgroup(cgroups, kernel.cgroups),
    networkInBytes: network?.inBytes ?? null,
    networkOutBytes: network?.outBytes ?? null,
    connectionsOpened: tcp.openedToIt,
    ...connectionsOf(located, tcp, (name) => inProcess(`net/${name}`, SOCKETS_BYTES)),
  };
}

function readCgroup(paths: CgroupPaths, root: string) {
  const { cpu, cpuAccount, memory } = paths;
  const read = (...path: string[]) => readKernelFile(join(root, ...path)) ?? '';
  if (paths.version === 2) {
    return {
      cpuUs: numberNamed(read(cpu, 'cpu.stat'), 'usage_usec'),
      cpuLimitMillis: parseCpuMax(read(cpu, 'cpu.max')),
      memoryUsedBytes: inUse(
        wholeNumber(read(memory, 'memory.current')),
        numberNamed(read(memory, 'memory.stat'), 'inactive_file'),
      ),
      memoryLimitBytes: wholeNumber(read(memory, 'memory.max')),
    };
  }
  const ns = wholeNumber(read('cpuacct', cpuAccount, 'cpuacct.usage'));
  const limit = wholeNumber(read('memory', memory, 'memory.limit_in_bytes'));
  return {
    cpuUs: ns === null ? null : Math.floor(ns / 1_000),
    cpuLimitMillis: cpuLimit(
      wholeNumber(read('cpu', cpu, 'cpu.cfs_quota_us')),
      wholeNumber(read('cpu', cpu, 'cpu.cfs_period_us')),
    ),
    memoryUsedBytes: inUse(
      wholeNumber(read('memory', memory, 'memory.usage_in_bytes')),
      numberNamed(read('memory', memory, 'memory.stat'), 'total_inactive_file'),
    ),
    memoryLimitBytes: limit !== null && limit < NO_LIMIT_BYTES ? limit : null,
  };
}

/** Returns the memory in use, without files that the kernel would drop first. */
function inUse(bytes: number | null, inactiveFileBytes: number | null): number | null {
  return bytes === null || inactiveFileBytes === null ? null : Math.max(bytes - inactiveFileBytes, 0);
}

type Connections = Pick<Accounts, 'sshSessions' | 'portConnections'>;

/** What was open at the last look; null: not measured. */
interface Open {
  ssh: ReadonlySet<string> | null;
  ports: number | null;
}

/** The connections of each workload, and the counters with which they were read. */
const lastRead = new WeakMap<LocatedWorkload, { counters: TcpCounters; open: Open }>();

/**
 * Counts connections. To read the tables of sockets takes the kernel milliseconds, because it looks through those of the whole host. So
 * they are read only if a connection was opened or has ended since.
 *
 * An SSH session is a connection that was open at two looks: strangers try their keys at every public address, and are gone soon.
 */
function connectionsOf(
  located: LocatedWorkload,
  counters: TcpCounters,
  readTable: (name: string) => string | undefined,
): Connections {
  const last = lastRead.get(located);
  const { openedToIt, openedByIt, open } = counters;
  const isSame =
    openedToIt !== null &&
    openedToIt === last?.counters.openedToIt &&
    openedByIt === last.counters.openedByIt &&
    open === last.counters.open;
  // Without an open connection there is nothing to find.
  const readNow = () => findIn(located, open === 0 ? [''] : [readTable('tcp'), readTable('tcp6')]);
  const now = last && isSame ? last.open : readNow();
  lastRead.set(located, { counters, open: now });
  return { sshSessions: sessionsIn(now.ssh, last?.open.ssh), portConnections: now.ports };
}

/** Counts the connections that were open before. Null where that is not known. */
function sessionsIn(now: Open['ssh'], before: Open['ssh'] | undefined): number | null {
  if (now === null) return null;
  if (now.size === 0) return 0;
  return before ? [...now].filter((connection) => before.has(connection)).length : null;
}

function findIn(
  { sshContainerPort, workload }: LocatedWorkload,
  // A kernel without IPv6 has only the first one.
  [tcp, tcp6 = '']: readonly (string | undefined)[],
): Open {
  if (tcp === undefined || tcp.length >= SOCKETS_BYTES || tcp6.length >= SOCKETS_BYTES)
    return { ssh: null, ports: null };
  const ports = new Set(workload.ports.map(({ port }) => port));
  const isCountable = workload.ports.every(({ protocol }) => protocol === 'tcp');
  const ssh = new Set(sshContainerPort === null ? [] : [sshContainerPort]);
  return {
    ssh: new Set(openConnections([tcp, tcp6], ssh)),
    // UDP has no connections.
    ports: isCountable ? openConnections([tcp, tcp6], ports).length : null,
  };
}

/** Returns up to `limit` bytes of a file that the kernel makes; undefined: it cannot be read. */
function readKernelFile(path: string, limit = SMALL_FILE_BYTES): string | undefined {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const bytes = Buffer.allocUnsafe(limit);
    let length = 0;
    for (;;) {
      const read = readSync(descriptor, bytes, length, limit - length, null);
      length += read;
      if (read === 0 || length === limit) return bytes.toString('latin1', 0, length);
    }
  } catch {
    return undefined;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
