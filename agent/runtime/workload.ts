import type { Access, PulledImage, WorkloadSpec } from '../../shared/gen/gpurent/agent/v1/agent.js';

import type { PublishedPort } from '../domain/ports.js';
import type { UnansweredCall } from '../domain/unanswered-call.js';

/** The state of an instance's workload on this host. */
export type Workload =
  | { state: 'absent' }
  /** Created and never started, so it holds no data of the renter. */
  | (WorkloadInfo & { state: 'created' })
  | (WorkloadInfo & { state: 'running'; startedAt: number; address: string })
  | (WorkloadInfo & {
      state: 'stopped';
      startedAt: number;
      finishedAt: number;
      exitCode: number;
      outOfMemory: boolean;
    });

export interface WorkloadInfo {
  instanceId: string;
  kind: 'container' | 'vm';
  /** Sequence of the command that created it. */
  sequence: number;
  gpuUuids: string[];
  /** Rented size of its disk, in GB of 10^9 bytes. */
  diskGb: number;
  /** Host port of its SSH; null if no SSH key was given. */
  sshPort: number | null;
  /** All other ports, published or guarded. */
  ports: PublishedPort[];
  /** SHA-256 of the access token, in hex; empty if there is no token. */
  tokenHash: string;
  /** Reference of its image, with the digest if a registry reported one. */
  image: string;
  /** Origin, encrypted by the control plane; empty if an older release created the workload. */
  origin: string;
}

/** What the labels say. They lack the current token hash, which can have been replaced: `find` returns it. */
export type WorkloadSummary = Omit<WorkloadInfo, 'tokenHash'> & { state: 'created' | 'running' | 'stopped' };

export type ExistingWorkload = Exclude<Workload, { state: 'absent' }>;

/** A running workload, and where the host can find out what it uses. */
export interface LocatedWorkload {
  workload: Extract<Workload, { state: 'running' }>;
  /** Its first process, by the host's process ids. */
  pid: number;
  containerId: string;
  /** The port of gpurent's SSH server in it; null: no SSH key was given. */
  sshContainerPort: number | null;
  /** Where the file system keeps what it has written; null: there is no quota, or the storage driver is not supported. */
  disk: { driver: 'overlay2' | 'btrfs'; path: string } | null;
}

/** Returns the workload's info without its state. */
export function infoOf(workload: ExistingWorkload): WorkloadInfo {
  const { instanceId, kind, sequence, gpuUuids, diskGb, sshPort, ports, tokenHash, image, origin } = workload;
  return { instanceId, kind, sequence, gpuUuids, diskGb, sshPort, ports, tokenHash, image, origin };
}

/** Returns all host ports of the workload. */
export function portsOf({ sshPort, ports }: Pick<WorkloadInfo, 'sshPort' | 'ports'>): number[] {
  return [...(sshPort === null ? [] : [sshPort]), ...ports.map(({ hostPort }) => hostPort)];
}

export interface LogLine {
  /** RFC 3339 with nanoseconds. */
  at: string;
  text: string;
}

/** Reports a step of a creation, in words for the renter; after a pull also what the image says of itself. */
export type OnProgress = (kind: string, message: string, pulled?: PulledImage) => void;

/**
 * Runs workloads. Every call has a deadline. A call that misses it throws Failure DOCKER_TIMEOUT and can still take
 * effect; {@link whenIdle} waits for that. A workload that has ever started is never recreated, because its disk
 * belongs to the renter.
 */
export interface Runtime {
  find(instanceId: string): Promise<Workload>;
  /** Returns a summary of every workload of this host, even while a single workload is stuck. */
  list(): Promise<WorkloadSummary[]>;
  /** Fetches the image. Throws Failure IMAGE_UNAVAILABLE, IMAGE_TOO_SLOW; `signal` cancels the fetch. */
  fetchImage(spec: WorkloadSpec, onProgress: OnProgress, signal: AbortSignal): Promise<void>;
  /** Creates and starts the workload, on free ports of the range. Leaves nothing behind if it throws. */
  create(instanceId: string, sequence: number, spec: WorkloadSpec): Promise<void>;
  /** Starts a stopped workload. Throws Failure PORT_TAKEN, CONTAINER_FAILED. */
  start(instanceId: string): Promise<void>;
  /** Asks the workload to end, and kills it after its grace. Resolves when it is down or absent. */
  stop(instanceId: string): Promise<void>;
  /**
   * Removes the container with its disk, its files on the host and its network. Resolves when Docker no longer knows
   * them.
   */
  remove(instanceId: string): Promise<void>;
  /**
   * Replaces the access of the workload; does nothing if the workload is absent. A running workload uses the new key
   * within seconds, and the rest of the new environment from its next start. Returns whether its SSH key cannot be
   * replaced.
   */
  replaceAccess(instanceId: string, access: Access): Promise<{ sshKeyStays: boolean }>;
  /** Returns the last lines of output, oldest first. */
  tail(instanceId: string, lines: number): Promise<LogLine[]>;
  /**
   * Yields the lines with a timestamp after `since`, until the workload ends or `signal` is aborted. `newest`: begins with that many
   * of the lines that exist; without it, with all of them.
   */
  follow(instanceId: string, since: string, signal: AbortSignal, newest?: number): AsyncIterable<LogLine[]>;
  /** Returns whether an SSH server answers on the published port. */
  sshAnswers(port: number): Promise<boolean>;
  /** Throws Failure PORT_TAKEN, naming the port, if another program listens on a port of a workload that is down. */
  checkPorts(workload: WorkloadInfo): Promise<void>;
  /** Returns whether Docker still has to answer a call that creates or starts something of the instance. */
  hasUnanswered(instanceId: string): boolean;
  /** Returns all such calls of this host, including those within their deadline. */
  unansweredCalls(): UnansweredCall[];
  /** Resolves once Docker has answered all such calls of the instance. */
  whenIdle(instanceId: string): Promise<void>;
}

/** Observes Docker as a whole, independently of commands. */
export interface DockerWatch {
  isAvailable(): Promise<boolean>;
  /** Returns when Docker started, in milliseconds since 1970; null if the host does not tell. */
  startedAt(): Promise<number | null>;
  /** Returns whether workloads keep running while Docker alone is down (live-restore). */
  keepsWorkloads(): Promise<boolean>;
  /** By how much Docker's clock was ahead of this host's when it last described itself, in milliseconds. */
  readonly clockAheadMs?: number | undefined;
  /** Calls `onEvent` for each event about this host's workloads. Resolves when the stream of events ends. */
  events(onEvent: (instanceId: string) => void, signal: AbortSignal): Promise<void>;
}
