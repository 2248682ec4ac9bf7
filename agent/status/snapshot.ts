import { MINUTE_MS } from '../../shared/time.js';
import type { PublishedPort } from '../domain/ports.js';
import type { UnansweredCall } from '../domain/unanswered-call.js';
import type { GpuInventory } from '../host/gpus/driver.js';

/** How this host stands at one moment, for its owner. */
export interface Snapshot extends GpuInventory {
  version: string;
  connected: boolean;
  /** Why the control plane is not connected, and when that was found out last, in ISO 8601; null: it is, or was not dialled yet. */
  disconnected: { at: string; reason: string } | null;
  /** The last time since it was connected that the control plane turned this host away, or was not to be trusted. */
  refusal: { at: string; reason: string; remedy: string } | null;
  dockerAvailable: boolean;
  /** Why this host takes nothing new; empty: it does. */
  obstacle: string;
  diskFreeGb: number;
  /** What Docker owes an answer for. */
  unanswered: UnansweredCall[];
  workloads: WorkloadStatus[];
  /** Finished since the agent started. */
  commands: CommandCount[];
}

export interface WorkloadStatus {
  instanceId: string;
  kind: 'container' | 'vm';
  state: string;
  /** What it is meant to be. */
  desired: string;
  gpuUuids: string[];
  diskGb: number;
  sshPort: number | null;
  ports: PublishedPort[];
}

export interface CommandCount {
  kind: string;
  outcome: string;
  count: number;
}

/** Past the deadline of every call. */
const LATE_MS = 5 * MINUTE_MS;

/** Tells a host's owner what `gpurent-agent status` shows. */
export function describeSnapshot(snapshot: Snapshot): string {
  const { gpus, workloads } = snapshot;
  return [
    `agent ${snapshot.version}, ${snapshot.connected ? 'connected' : 'NOT connected'} to the control plane`,
    ...linesOfLink(snapshot),
    `Docker ${snapshot.dockerAvailable ? 'answers' : 'does NOT answer, or not for this host (see doctor)'}, ${snapshot.diskFreeGb} GB of its disk are free for renters`,
    ...(snapshot.obstacle === '' ? [] : [`takes NOTHING new: ${snapshot.obstacle}`]),
    ...snapshot.unanswered
      .filter(({ ms }) => ms >= LATE_MS)
      .map(
        ({ instanceId, what, ms }) =>
          `Docker does NOT ${what} of ${instanceId} and has not said so for ${Math.floor(ms / MINUTE_MS)} minutes: restart it ("systemctl restart docker")`,
      ),
    '',
    `${gpus.length} GPUs (driver ${snapshot.driverVersion || 'none'}, CUDA ${snapshot.cudaVersion || 'none'})`,
    ...gpus.map(({ index, uuid, model, healthy, reason }) => {
      const user = workloads.find(({ gpuUuids, state }) => state === 'running' && gpuUuids.includes(uuid));
      const use = healthy ? (user?.instanceId ?? 'free') : `NOT RENTED OUT: ${reason}`;
      return `  ${index}  ${model}  ${uuid}  ${use}`;
    }),
    '',
    `${workloads.length} workloads`,
    ...workloads.map(({ instanceId, kind, state, desired, diskGb, sshPort }) => {
      const meant = state === desired ? '' : ` (meant to be ${desired})`;
      return `  ${instanceId}  ${kind}  ${state}${meant}  ${diskGb} GB  ${sshPort === null ? 'no SSH' : `SSH on ${sshPort}`}`;
    }),
  ].join('\n');
}

function linesOfLink({ disconnected, refusal }: Snapshot): string[] {
  const isNews = disconnected && disconnected.reason !== refusal?.reason;
  return [
    ...(refusal ? [`  REFUSED at ${refusal.at}: ${refusal.reason}`, `  what to do: ${refusal.remedy}`] : []),
    ...(isNews ? [`  last tried at ${disconnected.at}: ${disconnected.reason}`] : []),
  ];
}
