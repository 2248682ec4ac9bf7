import type { Clock } from '../../../shared/clock.js';
import type { ControlMessage, Gpu } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { MINUTE_MS } from '../../../shared/time.js';
import { ClockMeasurement, type ClockDifference } from '../../domain/machines/clock-difference.js';
import type { HostTrouble } from '../../domain/instances/wait.js';
import { KnownDisks } from './known-disks.js';
import { MessageRateLimiter } from './message-rate-limiter.js';

/** One open stream of a host. */
export interface AgentStream {
  /** True while the queue of the stream is full. */
  readonly congested: boolean;
  /** Returns false if the stream is closed or its queue is full; the caller sends again later. */
  send(message: ControlMessage): boolean;
  /** Ends the stream; `reason` goes into the agent's log. */
  close(reason: string): void;
}

/** What a host says about itself. */
interface Health {
  dockerAvailable: boolean;
  /** Free space of the host's file system; null before the first heartbeat. */
  diskFreeGb: number | null;
  /** Why the host takes nothing new, as the agent says it; empty if it takes commands. */
  obstacle: string;
}

interface Connection extends Health {
  stream: AgentStream;
  clock: ClockMeasurement;
  heard: Heard;
  /** The GPUs of a heartbeat whose health is the stored one; null: unknown. */
  storedGpus: readonly GpuHealth[] | null;
}

type GpuHealth = Pick<Gpu, 'uuid' | 'healthy' | 'missing'>;

/** When a host was last heard, and the latest such time that is in the database; in monotonic milliseconds. */
interface Heard {
  at: number;
  writtenAt: number;
}

/** A run of a workload, as its agent reports it. */
export interface ReportedRun {
  runId: string;
  /** How many milliseconds it has lasted, by the host's clock. */
  ms: number;
}

const BLOCKED_MS = MINUTE_MS;
/** A host that has been silent for longer counts as not connected. */
const LIVENESS_LIMIT_MS = 30_000;

/** Knows which hosts are connected. It keeps nothing that must survive a restart of the control plane. */
export class AgentConnections {
  private readonly connections = new Map<string, Connection>();
  /** The connected hosts that are not silent, the one that was heard longest ago first. */
  private readonly alive = new Set<string>();
  private readonly listeners: ((machineId: string) => void)[] = [];
  private readonly blockedUntil = new Map<string, number>();
  private readonly limiters = new Map<string, MessageRateLimiter>();
  /** The runs of each host's latest heartbeat, and its arrival in monotonic milliseconds. */
  private readonly running = new Map<string, { at: number; runs: ReadonlyMap<string, ReportedRun> }>();

  private readonly heardOf = new Map<string, Heard>();
  readonly disks = new KnownDisks();
  private known = 0;

  constructor(private readonly clock: Clock) {}

  /** Notes how many hosts the database knew when this process started: they will dial soon. */
  expect(hosts: number): void {
    this.known = hosts;
  }

  /** How many hosts would dial if this control plane were down for a moment. */
  get expected(): number {
    return Math.max(this.known, this.connections.size);
  }

  /** Registers a host's new stream and fences its older one. */
  attach(machineId: string, stream: AgentStream): void {
    this.connections.get(machineId)?.stream.close('a newer stream of this host has connected');
    const heard = this.heardOf.get(machineId) ?? { at: 0, writtenAt: -Infinity };
    this.heardOf.set(machineId, heard);
    heard.at = this.clock.monotonic();
    const health = { dockerAvailable: true, diskFreeGb: null, obstacle: '' };
    this.connections.set(machineId, { stream, heard, clock: new ClockMeasurement(), storedGpus: null, ...health });
    this.alive.delete(machineId);
    this.alive.add(machineId);
    this.tell(machineId);
  }

  /** Removes a stream. Returns true if it was the current one; a stream that was fenced before changes nothing. */
  detach(machineId: string, stream: AgentStream): boolean {
    if (!this.isCurrent(machineId, stream)) return false;
    this.connections.delete(machineId);
    this.alive.delete(machineId);
    this.tell(machineId);
    return true;
  }

  /** Calls `listener` when what other methods say of a host's connection changes; of silence when it is noted. */
  onChange(listener: (machineId: string) => void): void {
    this.listeners.push(listener);
  }

  /** Tells the listeners of each host that has fallen silent since the last call. */
  noteSilence(): void {
    for (const machineId of this.alive) {
      if (this.isConnected(machineId)) return;
      this.alive.delete(machineId);
      this.tell(machineId);
    }
  }

  private tell(machineId: string): void {
    for (const listener of this.listeners) listener(machineId);
  }

  /** Tells whether a host stays within its limit with `units` more. A host that does not is blocked for a minute. */
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

  /** Notes that the host has just sent a message. */
  heard(machineId: string): void {
    const connection = this.connections.get(machineId);
    if (!connection) return;
    connection.heard.at = this.clock.monotonic();
    this.disks.heard(machineId, connection.stream);
    // Listeners were told that a host is silent only once somebody asked.
    if (!this.alive.delete(machineId)) this.tell(machineId);
    this.alive.add(machineId);
  }

  /** Returns when the host was last heard by this process, in monotonic milliseconds; undefined: never. */
  heardAt(machineId: string): number | undefined {
    return this.heardOf.get(machineId)?.at;
  }

  /** Notes that the control plane could not hear the host, by its own fault. */
  doubtDisks(machineId: string): void {
    this.disks.doubt(machineId, this.connections.get(machineId)?.stream);
  }

  /** Returns up to `limit` hosts that were heard more than `grainMs` after the time that is in the database. */
  findUnwritten(grainMs: number, limit: number): { machineId: string; heard: Readonly<Heard> }[] {
    const found: { machineId: string; heard: Readonly<Heard> }[] = [];
    for (const [machineId, { at, writtenAt }] of this.heardOf) {
      if (at - writtenAt <= grainMs) continue;
      found.push({ machineId, heard: { at, writtenAt } });
      if (found.length === limit) break;
    }
    return found;
  }

  /** Notes that the database has the time `at`, in monotonic milliseconds, at which the host was heard. */
  setWritten(machineId: string, at: number): void {
    const heard = this.heardOf.get(machineId);
    if (heard) heard.writtenAt = at;
  }

  setDockerAvailable(machineId: string, dockerAvailable: boolean): void {
    this.change(machineId, { dockerAvailable });
  }

  recordHealth(machineId: string, health: Health): void {
    this.change(machineId, health);
  }

  /** Notes what a heartbeat that has just arrived says of the host's clock (`sentAt`) and of Docker's. */
  recordClock(machineId: string, sentAt: number, dockerAheadMs: number | null): void {
    const clock = this.connections.get(machineId)?.clock;
    if (clock?.note(sentAt, this.clock.now(), dockerAheadMs)) this.tell(machineId);
  }

  /** Returns by how much the clocks of a connected host are ahead; null: not measured. */
  clockOf(machineId: string): ClockDifference | null {
    return this.connections.get(machineId)?.clock.difference ?? null;
  }

  /** Returns by how much the clock of each connected host is ahead. */
  hostClocks(): number[] {
    return this.connectedIds().flatMap((id) => this.clockOf(id)?.host ?? []);
  }

  private change(machineId: string, changes: Partial<Health>): void {
    const connection = this.connections.get(machineId);
    if (!connection) return;
    const isSame = Object.entries(changes).every(([name, value]) => connection[name as keyof Health] === value);
    if (isSame) return;
    Object.assign(connection, changes);
    this.tell(machineId);
  }

  /** Tells whether the health of these GPUs is the stored one. */
  areGpusStored(machineId: string, gpus: readonly Gpu[]): boolean {
    const stored = this.connections.get(machineId)?.storedGpus;
    if (stored?.length !== gpus.length) return false;
    return gpus.every((gpu, index) => isSame(gpu, stored[index]));
  }

  /** Notes that the health of these GPUs is the stored one; null: the stored one is not known. */
  setStoredGpus(machineId: string, gpus: readonly Gpu[] | null): void {
    const connection = this.connections.get(machineId);
    if (connection)
      connection.storedGpus =
        gpus?.map(({ uuid, healthy, missing }) => ({ uuid, healthy, missing: missing === true })) ?? null;
  }

  setRunning(machineId: string, runs: ReadonlyMap<string, ReportedRun>): void {
    this.running.set(machineId, { at: this.clock.monotonic(), runs });
  }

  /** Returns the run of an instance from its host's latest heartbeat, and the heartbeat's age in ms. Undefined if it has none. */
  lastHeard(machineId: string, instanceId: string): (ReportedRun & { agoMs: number }) | undefined {
    const heard = this.running.get(machineId);
    const run = heard?.runs.get(instanceId);
    return heard && run && { ...run, agoMs: Math.ceil(this.clock.monotonic() - heard.at) };
  }

  /** Returns why the host takes nothing new, as the agent says it; null if it takes commands or has no stream. */
  obstacleOf(machineId: string): string | null {
    return this.connections.get(machineId)?.obstacle || null;
  }

  /** Returns the free space of the host's file system in GB; Infinity before its first heartbeat. */
  diskFreeGb(machineId: string): number {
    return this.connections.get(machineId)?.diskFreeGb ?? Infinity;
  }

  isConnected(machineId: string): boolean {
    const connection = this.connections.get(machineId);
    return connection !== undefined && this.clock.monotonic() - connection.heard.at <= LIVENESS_LIMIT_MS;
  }

  /** Tells whether the host is connected and can run a new workload. */
  isReady(machineId: string): boolean {
    return this.troubleOf(machineId) === null;
  }

  /** Returns what keeps the host from running a new workload, or null. */
  troubleOf(machineId: string): HostTrouble | null {
    const connection = this.connections.get(machineId);
    if (!connection || !this.isConnected(machineId)) return 'host_away';
    if (!connection.dockerAvailable) return 'docker_down';
    return connection.obstacle === '' ? null : 'obstacle';
  }

  /** Tells whether the host is connected and the queue of its stream has room. */
  isWritable(machineId: string): boolean {
    return this.isConnected(machineId) && this.connections.get(machineId)?.stream.congested === false;
  }

  connectedIds(): string[] {
    return [...this.connections.keys()].filter((machineId) => this.isConnected(machineId));
  }

  /** Sends a message. Returns false if the host has no stream or its queue is full. */
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

function isSame(gpu: GpuHealth, other: GpuHealth | undefined): boolean {
  return gpu.uuid === other?.uuid && gpu.healthy === other.healthy && (gpu.missing === true) === other.missing;
}
