import type { CertificateTerm } from '../../shared/network/certificate-term.js';
import { MINUTE_MS } from '../../shared/time.js';
import type { PublishedPort } from '../domain/ports.js';
import type { UnansweredCall } from '../domain/unanswered-call.js';
import type { GpuInventory } from '../host/gpus/driver.js';

/** The state of this host at one moment, for its owner. */
export interface Snapshot extends GpuInventory {
  version: string;
  connected: boolean;
  /**
   * Why the control plane is not connected, and when that was last found out (ISO 8601); null: it is connected, or was not
   * dialed yet.
   */
  disconnected: { at: string; reason: string } | null;
  /** The last refusal since the host was connected: the control plane turned it away, or its certificate was not trusted. */
  refusal: { at: string; reason: string; remedy: string } | null;
  dockerAvailable: boolean;
  /** Why this host takes nothing new; empty when it does. */
  obstacle: string;
  diskFreeGb: number;
  /** Why SSH host keys of instances could not be read the last time; empty if they could. */
  hostKeyFault: string;
  /** The certificates of this host: `host`, by which the control plane knows it, and `web`, of guarded ports. */
  certificates: CertificateTerm[];
  /** Why needs of this host are not met. */
  needs: string[];
  /** Why the agent does not upgrade itself although the owner of the host allows it, and why the latest upgrade has failed. */
  upgradeFaults: string[];
  /** Docker calls without an answer. */
  unanswered: UnansweredCall[];
  workloads: WorkloadStatus[];
  /** Commands that have finished since the agent started. */
  commands: CommandCount[];
}

export interface WorkloadStatus {
  instanceId: string;
  kind: 'container' | 'vm';
  state: string;
  /** The desired state in the journal, or `unknown`. */
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

/** Longer than the deadline of any call. */
const LATE_MS = 5 * MINUTE_MS;

/** Formats a snapshot as `gpurent-agent status` prints it. */
export function describeSnapshot(snapshot: Snapshot): string {
  const { gpus, workloads } = snapshot;
  return [
    `agent ${snapshot.version}, ${snapshot.connected ? 'connected' : 'NOT connected'} to the control plane`,
    ...linesOfLink(snapshot),
    `Docker ${snapshot.dockerAvailable ? 'answers' : 'does NOT answer, or does not show the instances of this host (run doctor)'}, ${snapshot.diskFreeGb} GB of its disk are free for renters`,
    ...snapshot.needs.filter((need) => !snapshot.obstacle.includes(need)).map((need) => `NOT as needed: ${need}`),
    ...(snapshot.obstacle === '' ? [] : [`takes NOTHING new: ${snapshot.obstacle}`]),
    ...snapshot.unanswered
      .filter(({ ms }) => ms >= LATE_MS)
      .map(
        ({ instanceId, what, ms }) =>
          `Docker has NOT answered for ${Math.floor(ms / MINUTE_MS)} minutes (${what} of ${instanceId}): restart it ("systemctl restart docker")`,
      ),
    ...snapshot.upgradeFaults.map((fault) => `does NOT upgrade itself: ${fault}`),
    ...(snapshot.hostKeyFault === '' ? [] : [`SSH host keys can NOT be read: ${snapshot.hostKeyFault} (run doctor)`]),
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
      const meant = state === desired ? '' : ` (should be ${desired})`;
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
