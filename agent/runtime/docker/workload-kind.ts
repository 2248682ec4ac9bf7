import type { WorkloadSpec } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import type { OnProgress, ExistingWorkload, WorkloadInfo } from '../workload.js';

/** Creates one kind of workload in Docker: containers or virtual machines. */
export interface WorkloadKind {
  /** Longest time from asking a workload to end until it is killed, in seconds. */
  readonly graceS: number;
  /** The same for a workload that has only just started. */
  readonly leastGraceS: number;
  /** Fetches the image. Throws Failure IMAGE_UNAVAILABLE, IMAGE_TOO_SLOW; `signal` cancels the fetch. */
  fetch(spec: WorkloadSpec, onProgress: OnProgress, signal: AbortSignal): Promise<void>;
  /** Looks up the fetched image that a workload is created from. Throws Failure IMAGE_UNAVAILABLE. */
  prepareWorkload(spec: WorkloadSpec): Promise<PreparedWorkload>;
  /** Prepares the host for a start; called right before each. Throws Failure GPUS_UNAVAILABLE, CONTAINER_FAILED. */
  prepare(workload: ExistingWorkload): Promise<void>;
  /** Removes what is stored for the instance outside of Docker. */
  forget(instanceId: string): Promise<void>;
  /** Does the same for all instances that are not in `kept`. */
  forgetAllBut(kept: ReadonlySet<string>): Promise<void>;
}

export interface PreparedWorkload {
  /** Reference of its image, with the digest if a registry reported one. */
  reference: string;
  /** Creates the container without starting it. */
  create(info: WorkloadInfo, network: string): Promise<void>;
}

/** The facts about a host that every kind of workload needs. */
export interface DockerHost {
  hostId: string;
  guestTools: string;
  bindAddress: string;
  publicAddress(): Promise<string>;
  resolvers: readonly string[];
  /** Docker's runtime for renters' containers; null: Docker's default. */
  containerRuntime: string | null;
  hasDiskQuota(): Promise<boolean>;
}
