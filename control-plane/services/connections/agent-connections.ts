import type { Clock } from '../../../shared/clock.js';
import type { ControlMessage } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { MINUTE_MS } from '../../../shared/time.js';
import type { HostTrouble } from '../../domain/wait.js';
import { MessageRateLimiter } from './message-rate-limiter.js';

/** One open stream of a host. */
export interface AgentStream {
  /** Whether it has room for more. */
  readonly congested: boolean;
  /** False when the stream is closed or its queue is full; the worker comes again. */
  send(message: ControlMessage): boolean;
  /** Ends the stream; `reason` is for the host's log. */
  close(reason: string): void;
}

interface Connection {
  stream: AgentStream;
  heardAt: number;
  dockerAvailable: boolean;
  /** What its file system has left; not known before the first heartbeat. */
  diskFreeGb: number | null;
  /** Why it takes nothing new, in its own words; empty: it does. */
  obstacle: string;
}

/** A run of a workload, in its host's words. */
export interface ReportedRun {
  runId: string;
  /** For how long it has lasted, by the host's own clock. */
  ms: number;
}

const BLOCKED_MS = MINUTE_MS;
/** A host that has been silent for longer is not connected. */
const LIVENESS_LIMIT_MS = 30_000;

/** Which hosts are connected at this moment. Holds no fact that a restart could lose. */
export class AgentConnections {
  private readonly connections = new Map<string, Connection>();
  private readonly blockedUntil = new Map<string, number>();
  private readonly limiters = new Map<string, MessageRateLimiter>();
  /** What each host has last said to run, and when, in monotonic milliseconds. */
  private readonly running = new Map<string, { at: number; runs: ReadonlyMap<string, ReportedRun> }>();

  constructor(private readonly clock: Clock) {}

  /** Registers a host's new stream and fences its older one. */
  attach(machineId: string, stream: AgentStream): void {
    this.connections.get(machineId)?.stream.close('a newer stream of this host has connected');
    this.connections.set(machineId, {
      stream,
      heardAt: this.clock.monotonic(),
      dockerAvailable: true,
      diskFreeGb: null,
      obstacle: '',
    });
  }

  /** Forgets a stream; one that was fenced already changes nothing. True when it was the current one. */
  detach(machineId: string, stream: AgentStream): boolean {
    return this.isCurrent(machineId, stream) && this.connections.delete(machineId);
  }

  /** Whether a host may say so much more; one that may not is blocked for a minute. */
  allows(machineId: string, what: 'facts' | 'logs', units: number): boolean {
    const now = this.clock.monotonic();
    const limiter = this.limiters.get(machineId) ?? new MessageRateLimiter();
    this.limiters.set(machineId, limiter);
    if (limiter.allows(what, units, now)) return true;
    this.blockedUntil.set(machineId, now + BLOCKED_MS);
    return false;
  }

  isBlocked(machineId: string): boolean {
    return (this.blockedUntil.get(machineId) ?? -Infinity) > this.clock.monotonic();
  }

  isCurrent(machineId: string, stream: AgentStream): boolean {
    return this.connections.get(machineId)?.stream === stream;
  }

  heard(machineId: string): void {
    const connection = this.connections.get(machineId);
    if (connection) connection.heardAt = this.clock.monotonic();
  }

  setDockerAvailable(machineId: string, available: boolean): void {
    const connection = this.connections.get(machineId);
    if (connection) connection.dockerAvailable = available;
  }

  setDiskFree(machineId: string, gb: number): void {
    const connection = this.connections.get(machineId);
    if (connection) connection.diskFreeGb = gb;
  }

  setObstacle(machineId: string, obstacle: string): void {
    const connection = this.connections.get(machineId);
    if (connection) connection.obstacle = obstacle;
  }

  setRunning(machineId: string, runs: ReadonlyMap<string, ReportedRun>): void {
    this.running.set(machineId, { at: this.clock.monotonic(), runs });
  }

  /** What a host has last said of an instance that ran, and how many milliseconds ago; since the start of the control plane. */
  lastHeard(machineId: string, instanceId: string): (ReportedRun & { agoMs: number }) | undefined {
    const heard = this.running.get(machineId);
    const run = heard?.runs.get(instanceId);
    return heard && run && { ...run, agoMs: Math.ceil(this.clock.monotonic() - heard.at) };
  }

  /** Why a host that is connected takes nothing new, in its own words; null: it does, or nobody knows. */
  obstacleOf(machineId: string): string | null {
    return this.connections.get(machineId)?.obstacle || null;
  }

  /** What a new disk may take at most, as far as the host has said. */
  diskFreeGb(machineId: string): number {
    return this.connections.get(machineId)?.diskFreeGb ?? Infinity;
  }

  isConnected(machineId: string): boolean {
    const connection = this.connections.get(machineId);
    return connection !== undefined && this.clock.monotonic() - connection.heardAt <= LIVENESS_LIMIT_MS;
  }

  /** Connected, and able to run something new. */
  isReady(machineId: string): boolean {
    return this.troubleOf(machineId) === null;
  }

  /** What keeps the host from running something new; null: nothing does. */
  troubleOf(machineId: string): HostTrouble | null {
    const connection = this.connections.get(machineId);
    if (!connection || !this.isConnected(machineId)) return 'host_away';
    if (!connection.dockerAvailable) return 'docker_down';
    return connection.obstacle === '' ? null : 'obstacle';
  }

  /** Connected, and its queue has room. */
  isWritable(machineId: string): boolean {
    return this.isConnected(machineId) && this.connections.get(machineId)?.stream.congested === false;
  }

  connectedIds(): string[] {
    return [...this.connections.keys()].filter((machineId) => this.isConnected(machineId));
  }

  /** False when the host is not connected or its queue is full. */
  send(machineId: string, message: ControlMessage): boolean {
    return this.connections.get(machineId)?.stream.send(message) ?? false;
  }

  /** Ends the stream of one host, if it has one. */
  close(machineId: string, reason: string): void {
    this.connections.get(machineId)?.stream.close(reason);
  }

  closeAll(reason: string): void {
    for (const { stream } of this.connections.values()) stream.close(reason);
  }
}
