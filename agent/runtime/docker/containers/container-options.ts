import type { ContainerCreateOptions } from 'dockerode';
import { MIB } from '../../../../shared/bytes.js';
import type { WorkloadSpec } from '../../../../shared/gen/gpurent/agent/v1/agent.js';
import { isVendorVariable } from '../../../../shared/gpus/gpu-vendors.js';
import { addressesOf } from '../../../domain/ports.js';
import type { GpuAttachment } from '../../../host/gpus/driver.js';
import type { WorkloadInfo } from '../../workload.js';
import { hostnameOf } from '../files/etc-files.js';
import type { BindMount } from '../files/instance-folders.js';
import { containerName, labelsOf } from '../labels.js';
import type { ImageDefaults } from '../images/images.js';

/** Port of our SSH server in the container; not 22, which a server of the image can use. */
export const SSH_CONTAINER_PORT = 22022;
/** Tells init the SSH key with which the workload was created. */
export const SSH_KEY_VARIABLE = 'GPURENT_SSH_AUTHORIZED_KEY';
const TOOLS_DIR = '/.gpurent';

/** Docker's default set without NET_RAW and MKNOD. */
const CAPABILITIES = [
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
];
const GB = 1_000_000_000;
const PIDS_LIMIT = 4096;
const DOCKER_CPU_UNIT = 1_000_000;
const LEAST_SHM_MB = 64;

/** The host's part of a container's options. */
export interface HostSettings {
  hostId: string;
  /** Of the workload to create. */
  info: WorkloadInfo;
  /** ID of the image. */
  imageId: string;
  /** Name of the instance's own network. */
  network: string;
  /** Folder of the host with the guest tools. */
  guestTools: string;
  /** Address of the host on which ports are published. */
  bindAddress: string;
  /** Address at which renters reach this host. */
  publicAddress: string;
  /** Addresses of name servers. */
  resolvers: readonly string[];
  openFiles: number;
  /** Docker's runtime for the container; null: Docker's default. */
  containerRuntime: string | null;
  /** Our versions of the files that Docker would keep outside of the disk, and the folder with replaced access. */
  mounts: BindMount[];
  /** Whether Docker can enforce the size of the disk. */
  hasDiskQuota: boolean;
  /** The attachment of exactly the instance's GPUs. */
  gpuAttachment: GpuAttachment;
}

/**
 * Returns Docker's options for the container of a workload. Only what is listed here goes into them: nothing that a
 * control plane or a renter sends can add a mount, a device, a capability or a namespace.
 */
export function containerOptions(
  spec: WorkloadSpec,
  image: ImageDefaults,
  placement: HostSettings,
): ContainerCreateOptions {
  const { info, gpuAttachment } = placement;
  const memory = spec.memoryMb * MIB;
  const published = publishedBy(info, placement.bindAddress);
  return {
    name: containerName(info.instanceId),
    Image: placement.imageId,
    Hostname: hostnameOf(info.instanceId),
    User: '0:0',
    // Docker sends it to our init, which ends the command with the image's own signal.
    StopSignal: 'SIGTERM',
    Entrypoint: [`${TOOLS_DIR}/bin/sh`, `${TOOLS_DIR}/init`],
    Cmd: spec.command.length > 0 ? spec.command : [...image.entrypoint, ...image.command],
    Env: environmentOf(spec, image, placement),
    Labels: labelsOf(placement.hostId, info),
    // Our init changes to the image's working directory, as any process of the container can. Docker would resolve that
    // path from outside of the container, which has exposed the host's files before.
    WorkingDir: '/',
    // An image's health check, which Docker would run every few seconds, is not part of what is rented.
    Healthcheck: { Test: ['NONE'] },
    ExposedPorts: Object.fromEntries(Object.keys(published).map((port) => [port, {}])),
    HostConfig: {
      Init: true,
      ...(placement.containerRuntime === null ? {} : { Runtime: placement.containerRuntime }),
      NetworkMode: placement.network,
      Dns: [...placement.resolvers],
      PortBindings: published,
      Mounts: [{ Type: 'bind', Source: placement.guestTools, Target: TOOLS_DIR, ReadOnly: true }, ...placement.mounts],
      DeviceRequests: gpuAttachment.deviceRequests,
      CapDrop: ['ALL'],
      CapAdd: CAPABILITIES,
      SecurityOpt: ['no-new-privileges'],
      NanoCpus: spec.cpuMillis * DOCKER_CPU_UNIT,
      Memory: memory,
      MemorySwap: memory,
      ShmSize: Math.max(Math.floor(spec.memoryMb / 2), LEAST_SHM_MB) * MIB,
      PidsLimit: PIDS_LIMIT,
      Ulimits: [
        { Name: 'nofile', Soft: placement.openFiles, Hard: placement.openFiles },
        // The kernel can pass core dumps to a program of the host, which renters must not be able to start.
        { Name: 'core', Soft: 0, Hard: 0 },
      ],
      RestartPolicy: { Name: 'no' },
      LogConfig: logConfig(),
      ...(placement.hasDiskQuota ? { StorageOpt: { size: String(spec.diskGb * GB) } } : {}),
    },
  };
}

export function logConfig() {
  return { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '3' } };
}

/** Returns the ports that Docker publishes: SSH, and all ports that the access proxy does not guard. */
export function publishedBy(
  { sshPort, ports }: WorkloadInfo,
  HostIp: string,
): Record<string, { HostIp: string; HostPort: string }[]> {
  const open = ports
    .filter(({ guarded }) => !guarded)
    .map(({ port, protocol, hostPort }) => ({ port, protocol, hostPort }));
  const ssh = sshPort === null ? [] : [{ port: SSH_CONTAINER_PORT, protocol: 'tcp', hostPort: sshPort }];
  return Object.fromEntries(
    [...ssh, ...open].map(({ port, protocol, hostPort }) => [
      `${port}/${protocol}`,
      [{ HostIp, HostPort: String(hostPort) }],
    ]),
  );
}

function environmentOf(spec: WorkloadSpec, image: ImageDefaults, placement: HostSettings): string[] {
  const own = {
    GPURENT_SSH_PORT: String(SSH_CONTAINER_PORT),
    GPURENT_SSH_USER: spec.sshUser,
    [SSH_KEY_VARIABLE]: spec.sshAuthorizedKey,
    GPURENT_RUN_AS: runAs(image.user),
    GPURENT_SETS_HOME: image.setsHome ? '1' : '0',
    GPURENT_WORKDIR: image.workingDir,
    GPURENT_STOP_SIGNAL: image.stopSignal.replace(/^SIG/, ''),
    GPURENT_INTERACTIVE: spec.interactive ? '1' : '0',
    GPURENT_ONSTART: spec.onstart,
  };
  const renters = spec.env.filter(({ key }) => !key.startsWith('GPURENT_') && !isVendorVariable(key));
  return [
    ...renters.map(({ key, value }) => `${key}=${value}`),
    ...placement.gpuAttachment.env,
    ...addressesOf(placement.publicAddress, placement.info.ports).map(({ key, value }) => `${key}=${value}`),
    ...Object.entries(own).map(([key, value]) => `${key}=${value}`),
  ];
}

/** Returns the user of the image's command, empty for root. Our init itself always runs as root. */
function runAs(user: string): string {
  return /^(root|0)?(:|$)/.test(user) ? '' : user;
}
