import type { ContainerCreateOptions } from 'dockerode';
import type { WorkloadSpec } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { isVendorVariable } from '../../../shared/gpu-vendors.js';
import { addressesOf } from '../../domain/ports.js';
import type { GpuAttachment } from '../../host/gpus/driver.js';
import type { WorkloadInfo } from '../workload.js';
import { hostnameOf } from './etc-files.js';
import type { BindMount } from './instance-folders.js';
import { labelsOf } from './labels.js';

/** Where SSH is reached inside the container, out of the way of the image's own. */
export const SSH_CONTAINER_PORT = 22022;
/** Tells init the key that the workload was made with. */
export const SSH_KEY_VARIABLE = 'GPURENT_SSH_AUTHORIZED_KEY';
const TOOLS_DIR = '/.gpurent';

/** Docker's default set less NET_RAW and MKNOD. */
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
const MIB = 1024 * 1024;
const GB = 1_000_000_000;
const PIDS_LIMIT = 4096;
const DOCKER_CPU_UNIT = 1_000_000;
const LEAST_SHM_MB = 64;

/** What this host adds to what is asked for. */
export interface HostSettings {
  hostId: string;
  /** Of the workload to be. */
  info: WorkloadInfo;
  /** The image by its own identity. */
  imageId: string;
  /** Of the instance's own network. */
  network: string;
  /** Host folder with our static tools. */
  guestTools: string;
  /** The host address that ports are published on. */
  bindAddress: string;
  /** Where renters reach this host. */
  publicAddress: string;
  /** Name servers. */
  resolvers: readonly string[];
  openFiles: number;
  /** What Docker runs it with; null: its default. */
  containerRuntime: string | null;
  /** Our files in the places of those that Docker would keep outside of the disk, and what init is to know of access. */
  mounts: BindMount[];
  /** Whether Docker can hold the disk to its size. */
  hasDiskQuota: boolean;
  /** What the GPU driver adds to attach the instance's GPUs, and nothing else. */
  gpuAttachment: GpuAttachment;
}

/** What the image says of itself. */
export interface ImageDefaults {
  entrypoint: string[];
  command: string[];
  /** `name`, `uid`, `name:group` or `uid:gid`; empty: root. */
  user: string;
  /** How its command wants to be ended; empty: SIGTERM. */
  stopSignal: string;
  /** Folders that Docker keeps outside the container. */
  volumes: string[];
  setsHome: boolean;
  /** Where its command begins; empty: at the root. */
  workingDir: string;
}

/**
 * The container of a workload, built from this list alone: nothing that a control plane or a renter sends can add a mount, a
 * device, a capability or a namespace.
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
    // To our init, which ends the command with the image's own signal.
    StopSignal: 'SIGTERM',
    Entrypoint: [`${TOOLS_DIR}/bin/sh`, `${TOOLS_DIR}/init`],
    Cmd: spec.command.length > 0 ? spec.command : [...image.entrypoint, ...image.command],
    Env: environmentOf(spec, image, placement),
    Labels: labelsOf(placement.hostId, info),
    // Init goes to the image's own, as any process of the container may: what Docker enters is resolved outside of it, and has led
    // to the host's files.
    WorkingDir: '/',
    // What an image has run every few seconds is not part of what is rented.
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
        // Where the kernel hands what crashes to a program of the host's, that program is not for strangers to start.
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

export function containerName(instanceId: string): string {
  return `gpurent-${instanceId}`;
}

/** What Docker publishes: SSH, and what no proxy guards. */
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

/** Init itself is root; the image's command runs as the image's user. */
function runAs(user: string): string {
  return /^(root|0)?(:|$)/.test(user) ? '' : user;
}
