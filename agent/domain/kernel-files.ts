/** The paths of a process's cgroup below the kernel's mount of cgroups; `null`: the file does not say it. */
export interface CgroupPaths {
  version: 1 | 2;
  /** For version 2 all three are the same. */
  cpu: string;
  cpuAccount: string;
  memory: string;
}

/** A path that the kernel itself has made of names of Docker and systemd. */
const PLAIN_PATH = /^(\/[\w.:@-]+)+$/;

/**
 * Parses `/proc/PID/cgroup` of a process of this container. Returns undefined for a process that is in no cgroup of the container,
 * such as another one with the same id after the container has ended.
 */
export function parseCgroups(text: string, containerId: string): CgroupPaths | undefined {
  const paths = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    const isOurs = PLAIN_PATH.test(path) && !path.split('/').includes('..') && path.includes(containerId);
    if (isOurs) for (const controller of controllers.split(',')) paths.set(controller, path);
  }
  const [cpu, cpuAccount, memory] = ['cpu', 'cpuacct', 'memory'].map((name) => paths.get(name));
  if (cpu !== undefined && cpuAccount !== undefined && memory !== undefined)
    return { version: 1, cpu, cpuAccount, memory };
  const unified = paths.get('');
  return unified === undefined ? undefined : { version: 2, cpu: unified, cpuAccount: unified, memory: unified };
}

/** Returns the number after a name in a file of lines such as `usage_usec 123`; null: there is none. */
export function numberNamed(text: string, name: string): number | null {
  const line = text.split('\n').find((each) => each.startsWith(`${name} `));
  return line === undefined ? null : wholeNumber(line.slice(name.length + 1));
}

/** Parses a file that contains one number; null: it does not, as where it is `max`. */
export function wholeNumber(text: string): number | null {
  const trimmed = text.trim();
  if (!/^\d{1,19}$/.test(trimmed)) return null;
  const value = Number(trimmed);
  return Number.isSafeInteger(value) ? value : null;
}

/** Parses `cpu.max`, as `50000 100000`, into thousandths of a core; null: there is no limit. */
export function parseCpuMax(text: string): number | null {
  const [quota = '', period = ''] = text.trim().split(' ');
  return cpuLimit(wholeNumber(quota), wholeNumber(period));
}

/** Returns a limit in thousandths of a core; null: there is none. */
export function cpuLimit(quotaUs: number | null, periodUs: number | null): number | null {
  if (quotaUs === null || periodUs === null || periodUs === 0) return null;
  return Math.round((quotaUs * 1_000) / periodUs);
}

/** Parses `/proc/PID/net/dev`: the bytes that all interfaces but loopback have received and sent. Null: it is no such file. */
export function parseInterfaces(text: string): { inBytes: number; outBytes: number } | null {
  const lines = text
    .split('\n')
    .slice(2)
    .filter((line) => line.trim() !== '');
  const total = { inBytes: 0, outBytes: 0 };
  for (const line of lines) {
    const [, name, counters = ''] = /^\s*(\S+):\s*(.*)$/.exec(line) ?? [];
    const columns = counters.split(/\s+/);
    const [received, sent] = [wholeNumber(columns[0] ?? ''), wholeNumber(columns[8] ?? '')];
    if (name === undefined || received === null || sent === null) return null;
    if (name === 'lo') continue;
    total.inBytes += received;
    total.outBytes += sent;
  }
  return lines.length === 0 ? null : total;
}

/** The TCP connections of a network: those that others have opened to it, those that it has opened, and those that are open now. */
export interface TcpCounters {
  openedToIt: number | null;
  openedByIt: number | null;
  open: number | null;
}

/** Parses `/proc/PID/net/snmp`. */
export function parseTcpCounters(text: string): TcpCounters {
  const [names, values] = text
    .split('\n')
    .filter((line) => line.startsWith('Tcp: '))
    .map((line) => line.split(' '));
  const named = (name: string) => wholeNumber(values?.[names?.indexOf(name) ?? -1] ?? '');
  return { openedToIt: named('PassiveOpens'), openedByIt: named('ActiveOpens'), open: named('CurrEstab') };
}

/** The state of an open connection in `/proc/PID/net/tcp`. */
const ESTABLISHED = '01';

/** Returns the open connections at some ports in `/proc/PID/net/tcp` and `tcp6`, each as the addresses and ports of both ends. */
export function openConnections(texts: readonly string[], ports: ReadonlySet<number>): string[] {
  const lines = texts.flatMap((text) => text.split('\n'));
  return lines.flatMap((line) => {
    const [, ends = '', port = '', state] = SOCKET.exec(line) ?? [];
    return state === ESTABLISHED && ports.has(parseInt(port, 16)) ? [ends] : [];
  });
}

/** Of a line: both ends, of which the local one comes first, its port, and the state. */
const SOCKET =
  /^\s*\d+: ((?:[0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4}) (?:[0-9A-F]{8}|[0-9A-F]{32}):[0-9A-F]{4}) ([0-9A-F]{2}) /;

/** Finds in `/proc/self/mountinfo` the device of the btrfs that contains a path. Undefined: another file system does. */
export function btrfsDevice(mountinfo: string, path: string): string | undefined {
  const mounts = mountinfo.split('\n').flatMap((line) => {
    const [, point = '', type, device] = /^\S+ \S+ \S+ \S+ (\S+) .* - (\S+) (\S+) /.exec(line) ?? [];
    const folder = point.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8)));
    return path === folder || path.startsWith(folder === '/' ? '/' : `${folder}/`) ? [{ folder, type, device }] : [];
  });
  // Of several at the same place, the last one covers the others.
  const [nearest] = mounts.reverse().sort((one, other) => other.folder.length - one.folder.length);
  return nearest?.type === 'btrfs' ? nearest.device : undefined;
}
