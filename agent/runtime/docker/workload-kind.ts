import type { WorkloadSpec } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import type { OnProgress, ExistingWorkload, WorkloadInfo } from '../workload.js';

/** How Docker makes one kind of workload. */
export interface WorkloadKind {
  /** How long a workload may take to end once it was asked to, in seconds; then it is killed. */
  readonly graceS: number;
  /** The same of one that has only just started. */
  readonly leastGraceS: number;
  /** Brings here what it is made from. Throws Failure IMAGE_UNAVAILABLE, IMAGE_TOO_SLOW; `signal` abandons it. */
  fetch(spec: WorkloadSpec, onProgress: OnProgress, signal: AbortSignal): Promise<void>;
  /** What one is to be made from, which is here by now. Throws Failure IMAGE_UNAVAILABLE. */
  prepareWorkload(spec: WorkloadSpec): Promise<PreparedWorkload>;
  /** Right before each start. Throws Failure GPUS_UNAVAILABLE, CONTAINER_FAILED. */
  prepare(workload: ExistingWorkload): Promise<void>;
  /** What is kept for it outside of Docker goes with it. */
  forget(instanceId: string): Promise<void>;
  /** The same of all that are not `kept`. */
  forgetAllBut(kept: ReadonlySet<string>): Promise<void>;
}

export interface PreparedWorkload {
  /** Its image, with its digest where a registry has given it one. */
  reference: string;
  /** Makes the container, and leaves it to be started. */
  create(info: WorkloadInfo, network: string): Promise<void>;
}

/** What every kind needs to know of its host. */
export interface DockerHost {
  hostId: string;
  guestTools: string;
  bindAddress: string;
  publicAddress(): Promise<string>;
  resolvers: readonly string[];
  /** What Docker runs renters' containers with; null: its default. */
  containerRuntime: string | null;
  hasDiskQuota(): Promise<boolean>;
}
