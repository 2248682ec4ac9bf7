import type { Access, WorkloadSpec } from '../../shared/gen/gpurent/agent/v1/agent.js';

import type { PublishedPort } from '../domain/ports.js';
import type { UnansweredCall } from '../domain/unanswered-call.js';

/** How an instance's workload stands on this host. */
export type Workload =
  | { state: 'absent' }
  /** Created and never started: it holds nothing of a renter's. */
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
  /** The command sequence that created it. */
  sequence: number;
  gpuUuids: string[];
  /** What its disk was promised, in GB of 10^9 bytes. */
  diskGb: number;
  /** The published port; null where no key was given. */
  sshPort: number | null;
  /** What else can be reached. */
  ports: PublishedPort[];
  /** Of the access token, SHA-256 in hex; empty where there is none. */
  tokenHash: string;
  /** What it was made from, with its digest where a registry has given it one. */
  image: string;
  /** Whose it is, sealed by the control plane; empty where an older release has made it. */
  origin: string;
}

/** The labels alone: what has replaced the access token is found with the workload. */
export type WorkloadSummary = Omit<WorkloadInfo, 'tokenHash'> & { state: 'created' | 'running' | 'stopped' };

export type ExistingWorkload = Exclude<Workload, { state: 'absent' }>;

/** What stays the same for the life of a workload. */
export function infoOf(workload: ExistingWorkload): WorkloadInfo {
  const { instanceId, kind, sequence, gpuUuids, diskGb, sshPort, ports, tokenHash, image, origin } = workload;
  return { instanceId, kind, sequence, gpuUuids, diskGb, sshPort, ports, tokenHash, image, origin };
}

/** Every port of the host that is the workload's. */
export function portsOf({ sshPort, ports }: Pick<WorkloadInfo, 'sshPort' | 'ports'>): number[] {
  return [...(sshPort === null ? [] : [sshPort]), ...ports.map(({ hostPort }) => hostPort)];
}

export interface LogLine {
  /** RFC 3339 with nanoseconds. */
  at: string;
  text: string;
}

/** Where a creation stands, in words for the renter. */
export type OnProgress = (kind: string, message: string) => void;

/**
 * Runs workloads. Every call has a deadline; one that misses it throws Failure DOCKER_TIMEOUT and may still land, which
 * {@link whenIdle} waits for. A workload that has ever started is never recreated: its disk is the renter's.
 */
export interface Runtime {
  find(instanceId: string): Promise<Workload>;
  /** Every workload of this host, in few words: it answers also when a single one is stuck. */
  list(): Promise<WorkloadSummary[]>;
  /** Throws Failure IMAGE_UNAVAILABLE, IMAGE_TOO_SLOW; `signal` abandons it. */
  fetchImage(spec: WorkloadSpec, onProgress: OnProgress, signal: AbortSignal): Promise<void>;
  /** Creates and starts, on a free port of the range. Leaves nothing behind when it throws. */
  create(instanceId: string, sequence: number, spec: WorkloadSpec): Promise<void>;
  /** Starts a stopped one. Throws Failure PORT_TAKEN, CONTAINER_FAILED. */
  start(instanceId: string): Promise<void>;
  /** Asks, waits, kills; resolves when it is down or absent. */
  stop(instanceId: string): Promise<void>;
  /** Container, disk, contents and network; resolves when Docker no longer knows them. */
  remove(instanceId: string): Promise<void>;
  /**
   * From now on this is what lets people into the workload, whatever it was made with; nothing where it is absent. What runs takes
   * the key within seconds, and the rest of its environment at its next start. Answers whether its SSH key cannot be replaced.
   */
  replaceAccess(instanceId: string, access: Access): Promise<{ sshKeyStays: boolean }>;
  /** The last lines of output, oldest first. */
  tail(instanceId: string, lines: number): Promise<LogLine[]>;
  /** Lines that come after the one stamped `since`, until the workload ends or `signal` is aborted. */
  follow(instanceId: string, since: string, signal: AbortSignal): AsyncIterable<LogLine[]>;
  /** Whether our SSH answers on the published port. */
  sshAnswers(port: number): Promise<boolean>;
  /** Throws Failure PORT_TAKEN naming the port when something else listens on one of a workload that is down. */
  checkPorts(workload: WorkloadInfo): Promise<void>;
  /** Whether a call that brings something of the instance up has missed its deadline, and may still land. */
  hasUnanswered(instanceId: string): boolean;
  /** All of them, and those that are still within their deadline. */
  unansweredCalls(): UnansweredCall[];
  /** Resolves once no call of the instance is unanswered. */
  whenIdle(instanceId: string): Promise<void>;
}

/** Docker as a whole, for what no command asks for. */
export interface DockerWatch {
  isAvailable(): Promise<boolean>;
  /** When this run of Docker began, in milliseconds since 1970; null where the host does not tell. */
  startedAt(): Promise<number | null>;
  /** Whether workloads go on when it goes down by itself (live-restore). */
  keepsWorkloads(): Promise<boolean>;
  /** Resolves when the stream of events ends; `onEvent` is called for each that concerns this host's workloads. */
  events(onEvent: (instanceId: string) => void, signal: AbortSignal): Promise<void>;
}
