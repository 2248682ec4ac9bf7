import type { PublishedPort } from '../../domain/ports.js';
import type { WorkloadInfo } from '../workload.js';

/** Names of a container's labels. From them the agent can restore all else that it records of a workload. */
export const LABEL = {
  host: 'gpurent.host',
  instance: 'gpurent.instance',
  kind: 'gpurent.kind',
  sequence: 'gpurent.sequence',
  gpus: 'gpurent.gpus',
  diskGb: 'gpurent.disk-gb',
  sshPort: 'gpurent.ssh-port',
  ports: 'gpurent.ports',
  tokenHash: 'gpurent.token-hash',
  image: 'gpurent.image',
  origin: 'gpurent.origin',
} as const;

export function containerName(instanceId: string): string {
  return `gpurent-${instanceId}`;
}
/** Label of a test container with a GPU, which no other label marks as a workload. Its value is the host's id. */
export const GPU_TEST_LABEL = 'gpurent.gpu-test';

/** Prefix of the host's id in the host label of its canary. */
export const CANARY_OF = 'canary of ';

/** Defaults for fields that labels of older releases lack. The port counts as guarded, so that it is open to nobody. */
const PORT: PublishedPort = { port: 0, protocol: 'tcp', hostPort: 0, guarded: true, link: null };

export function labelsOf(hostId: string, info: WorkloadInfo): Record<string, string> {
  return {
    [LABEL.host]: hostId,
    [LABEL.instance]: info.instanceId,
    [LABEL.kind]: info.kind,
    [LABEL.sequence]: String(info.sequence),
    [LABEL.gpus]: info.gpuUuids.join(','),
    [LABEL.diskGb]: String(info.diskGb),
    [LABEL.sshPort]: info.sshPort === null ? '' : String(info.sshPort),
    [LABEL.ports]: JSON.stringify(info.ports),
    [LABEL.tokenHash]: info.tokenHash,
    [LABEL.image]: info.image,
    [LABEL.origin]: info.origin,
  };
}

export function traitsOf(labels: Record<string, string>): WorkloadInfo {
  const label = (name: string) => labels[name] ?? '';
  return {
    instanceId: label(LABEL.instance),
    kind: label(LABEL.kind) === 'vm' ? 'vm' : 'container',
    sequence: Number(label(LABEL.sequence)),
    gpuUuids: label(LABEL.gpus).split(',').filter(Boolean),
    diskGb: Number(label(LABEL.diskGb)) || 0,
    sshPort: label(LABEL.sshPort) === '' ? null : Number(label(LABEL.sshPort)),
    ports: (JSON.parse(label(LABEL.ports) || '[]') as Partial<PublishedPort>[]).map((port) => ({ ...PORT, ...port })),
    tokenHash: label(LABEL.tokenHash),
    image: label(LABEL.image),
    origin: label(LABEL.origin),
  };
}
