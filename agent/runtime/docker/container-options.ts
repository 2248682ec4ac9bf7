import type { ContainerCreateOptions } from 'dockerode';
import type { WorkloadSpec } from '../../../shared/gen/gpurent/agent/v1/agent.js';

export const LABEL = {
  host: 'gpurent.host',
  instance: 'gpurent.instance',
  sequence: 'gpurent.sequence',
  gpus: 'gpurent.gpus',
  diskGb: 'gpurent.disk-gb',
  sshPort: 'gpurent.ssh-port',
} as const;

export const NETWORK = 'gpurent';
/** Where our SSH listens inside the container, out of the way of the image's own. */
const SSH_CONTAINER_PORT = 22022;
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
const PIDS_LIMIT = 4096;
const DOCKER_CPU_UNIT = 1_000_000;
const LEAST_SHM_MB = 64;

export interface Placement {
  hostId: string;
  instanceId: string;
  sequence: number;
  /** Host folder with our static tools. */
  guestTools: string;
  bindAddress: string;
  /** Null where no key was given. */
  sshPort: number | null;
  openFiles: number;
  /** What the GPU driver adds to attach the instance's GPUs, and nothing else. */
  gpuAttachment: { env: string[]; deviceRequests: NonNullable<ContainerCreateOptions['HostConfig']>['DeviceRequests'] };
}

/** What the image says of itself. */
export interface ImageDefaults {
  entrypoint: string[];
  command: string[];
  /** `name`, `uid`, `name:group` or `uid:gid`; empty: root. */
  user: string;
  /** How its command wants to be ended; empty: SIGTERM. */
  stopSignal: string;
  setsHome: boolean;
}

/**
 * The container of a workload, built from this list alone: nothing that a control plane or a renter sends can add a mount, a
 * device, a capability or a namespace.
 */
export function containerOptions(
  spec: WorkloadSpec,
  image: ImageDefaults,
  placement: Placement,
): ContainerCreateOptions {
  const { sshPort, gpuAttachment } = placement;
  const memory = spec.memoryMb * MIB;
  const published =
    sshPort === null
      ? {}
      : { [`${SSH_CONTAINER_PORT}/tcp`]: [{ HostIp: placement.bindAddress, HostPort: String(sshPort) }] };
  return {
    name: containerName(placement.instanceId),
    Image: spec.image,
    Hostname: placement.instanceId.slice(0, 8),
    User: '0:0',
    // To our init, which ends the command with the image's own signal.
    StopSignal: 'SIGTERM',
    Entrypoint: [`${TOOLS_DIR}/bin/sh`, `${TOOLS_DIR}/init`],
    Cmd: spec.command.length > 0 ? spec.command : [...image.entrypoint, ...image.command],
    Env: environmentOf(spec, image, gpuAttachment.env),
    Labels: {
      [LABEL.host]: placement.hostId,
      [LABEL.instance]: placement.instanceId,
      [LABEL.sequence]: String(placement.sequence),
      [LABEL.gpus]: spec.gpuUuids.join(','),
      [LABEL.diskGb]: String(spec.diskGb),
      [LABEL.sshPort]: sshPort === null ? '' : String(sshPort),
    },
    ExposedPorts: Object.fromEntries(Object.keys(published).map((port) => [port, {}])),
    HostConfig: {
      Init: true,
      NetworkMode: NETWORK,
      PortBindings: published,
      Mounts: [{ Type: 'bind', Source: placement.guestTools, Target: TOOLS_DIR, ReadOnly: true }],
      DeviceRequests: gpuAttachment.deviceRequests,
      CapDrop: ['ALL'],
      CapAdd: CAPABILITIES,
      SecurityOpt: ['no-new-privileges'],
      NanoCpus: spec.cpuMillis * DOCKER_CPU_UNIT,
      Memory: memory,
      MemorySwap: memory,
      ShmSize: Math.max(Math.floor(spec.memoryMb / 2), LEAST_SHM_MB) * MIB,
      PidsLimit: PIDS_LIMIT,
      Ulimits: [{ Name: 'nofile', Soft: placement.openFiles, Hard: placement.openFiles }],
      RestartPolicy: { Name: 'no' },
      LogConfig: { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '3' } },
    },
  };
}

export function containerName(instanceId: string): string {
  return `gpurent-${instanceId}`;
}

function environmentOf(spec: WorkloadSpec, image: ImageDefaults, gpus: string[]): string[] {
  const own = {
    GPURENT_SSH_PORT: String(SSH_CONTAINER_PORT),
    GPURENT_SSH_USER: spec.sshUser,
    GPURENT_SSH_AUTHORIZED_KEY: spec.sshAuthorizedKey,
    GPURENT_RUN_AS: runAs(image.user),
    GPURENT_SETS_HOME: image.setsHome ? '1' : '0',
    GPURENT_STOP_SIGNAL: image.stopSignal.replace(/^SIG/, ''),
    GPURENT_INTERACTIVE: spec.interactive ? '1' : '0',
    GPURENT_ONSTART: spec.onstart,
  };
  const renters = spec.env.filter(({ key }) => !key.startsWith('GPURENT_') && !key.startsWith('NVIDIA_'));
  return [
    ...renters.map(({ key, value }) => `${key}=${value}`),
    ...gpus,
    ...Object.entries(own).map(([key, value]) => `${key}=${value}`),
  ];
}

/** Init itself is root; the image's command runs as the image's user. */
function runAs(user: string): string {
  return /^(root|0)?(:|$)/.test(user) ? '' : user;
}
