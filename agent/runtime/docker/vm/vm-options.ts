import type { ContainerCreateOptions } from 'dockerode';
import { MIB } from '../../../../shared/bytes.js';
import type { WorkloadSpec } from '../../../../shared/gen/gpurent/agent/v1/agent.js';
import type { Accelerator, MachineSize } from '../../../domain/virtual-machine.js';
import type { WorkloadInfo } from '../../workload.js';
import { SSH_CONTAINER_PORT, logConfig, publishedBy } from '../containers/container-options.js';
import { containerName, labelsOf } from '../labels.js';
import type { PreparedDisk } from './base-disks.js';
import type { HostNamespace } from './host-namespace.js';

const GB = 1_000_000_000;
const DOCKER_CPU_UNIT = 1_000_000;
const PIDS_LIMIT = 1024;
const SSH_PORT = 22;
/** Space that a disk takes beyond its size: its tables, the seed, and what the firmware stores. */
const OWN_SHARE = 1.001;
const OWN_BYTES = 64 * MIB;

/** The host's part of the options of a virtual machine's container. */
export interface VmPlacement {
  hostId: string;
  info: WorkloadInfo;
  disk: PreparedDisk;
  size: MachineSize;
  accelerator: Accelerator;
  network: string;
  bindAddress: string;
  resolvers: readonly string[];
  openFiles: number;
  hasDiskQuota: boolean;
  /** Longest time for the guest to shut down, and for its container to end, in seconds. */
  stopSeconds: number;
  graceS: number;
  /** Devices of the host that QEMU needs, and groups that can open them. */
  devices: readonly string[];
  groups: readonly number[];
  namespace: HostNamespace;
  /** PCI addresses of the devices that the guest gets. */
  passed: readonly string[];
}

/**
 * Returns Docker's options for the container of a virtual machine, with QEMU and the disk in it. It gets no privilege,
 * and no device beyond those named.
 */
export function vmOptions(spec: WorkloadSpec, placement: VmPlacement): ContainerCreateOptions {
  const { info, disk, network, bindAddress, openFiles, devices, passed, namespace } = placement;
  const memory = spec.memoryMb * MIB;
  const published = publishedBy(info, bindAddress);
  const openFilesLimit = { Name: 'nofile', Soft: openFiles, Hard: openFiles };
  // Memory to which a device writes must stay in place.
  const locked = passed.length > 0 ? [{ Name: 'memlock', Soft: -1, Hard: -1 }] : [];
  return {
    name: containerName(info.instanceId),
    Image: disk.imageId,
    Hostname: info.instanceId.slice(0, 8),
    User: namespace.user,
    StopSignal: 'SIGTERM',
    // Docker uses it when it shuts down with its host.
    StopTimeout: placement.graceS,
    Entrypoint: ['/runner'],
    Cmd: ['boot'],
    Env: [
      ...Object.entries(settingsOf(spec, placement)).map(([key, value]) => `GPURENT_VM_${key}=${value}`),
      passedSetting(passed),
    ],
    Labels: labelsOf(placement.hostId, info),
    ExposedPorts: Object.fromEntries(Object.keys(published).map((port) => [port, {}])),
    HostConfig: {
      Init: true,
      UsernsMode: namespace.usernsMode,
      NetworkMode: network,
      Dns: [...placement.resolvers],
      PortBindings: published,
      Devices: devices.map(asDevice),
      GroupAdd: placement.groups.map(String),
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      NanoCpus: spec.cpuMillis * DOCKER_CPU_UNIT,
      Memory: memory,
      MemorySwap: memory,
      PidsLimit: PIDS_LIMIT,
      Ulimits: [openFilesLimit, ...locked],
      RestartPolicy: { Name: 'no' },
      LogConfig: logConfig(),
      ...(placement.hasDiskQuota
        ? { StorageOpt: { size: String(Math.ceil(spec.diskGb * GB * OWN_SHARE) + OWN_BYTES) } }
        : {}),
    },
  };
}

/** Returns Docker's option for a device of the host, at the same path in the container. */
export function asDevice(path: string) {
  return { PathOnHost: path, PathInContainer: path, CgroupPermissions: 'rw' };
}

/** Returns the variable that tells the runner which devices the guest gets, by PCI address. */
export function passedSetting(addresses: readonly string[]): string {
  return `GPURENT_VM_DEVICES=${addresses.join(' ')}`;
}

function settingsOf(spec: WorkloadSpec, { info, disk, size, accelerator, stopSeconds }: VmPlacement) {
  const ssh = info.sshPort === null ? [] : [`tcp::${SSH_CONTAINER_PORT}-:${SSH_PORT}`];
  const forwards = [...ssh, ...info.ports.map(({ protocol, port }) => `${protocol}::${port}-:${port}`)];
  return {
    ID: info.instanceId,
    ACCEL: accelerator,
    CPUS: size.cpus,
    MEMORY_MB: size.memoryMb,
    DISK_BYTES: spec.diskGb * GB,
    FORMAT: disk.format,
    FIRMWARE: disk.firmware,
    FORWARD: forwards.join(' '),
    STOP_SECONDS: stopSeconds,
    STAYS_ON: spec.interactive ? 1 : 0,
  };
}
