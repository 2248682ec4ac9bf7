import type { Clock } from '../../../shared/clock.js';
import type { ControlMessage } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import type { HostTrouble } from '../../domain/wait.js';
import { Intake } from './message-rate-limiter.js';

/** One open stream of a host. */
export interface HostLink {
  /** Whether it has room for more. */
  readonly congested: boolean;
  /** False when the link is closed or its queue is full; the worker comes again. */
  send(message: ControlMessage): boolean;
  /** Ends the stream; `reason` is for the host's log. */
  close(reason: string): void;
}

interface Presence {
  link: HostLink;
  heardAt: number;
  dockerAvailable: boolean;
  /** What its file system has left; not known before the first heartbeat. */
  diskFreeGb: number | null;
  /** Why it takes nothing new, in its own words; empty: it does. */
  obstacle: string;
}

/** A run of a workload, in its host's words. */
export interface HeardRun {
  runId: string;
  /** For how long it has lasted, by the host's own clock. */
  ms: number;
}

const SHUNNED_MS = 60_000;
/** A host that has been silent for longer is not connected. */
const LIVENESS_LIMIT_MS = 30_000;

/** Which hosts are connected at this moment. Holds no fact that a restart could lose. */
export class HostLinks {
  private readonly presences = new Map<string, Presence>();
  private readonly shunnedUntil = new Map<string, number>();
  private readonly intakes = new Map<string, Intake>();
  /** What each host has last said to run, and when, in monotonic milliseconds. */
  private readonly running = new Map<string, { at: number; runs: ReadonlyMap<string, HeardRun> }>();

  constructor(private readonly clock: Clock) {}

  /** Registers a host's new stream and fences its older one. */
  attach(machineId: string, link: HostLink): void {
    this.presences.get(machineId)?.link.close('a newer stream of this host has connected');
    this.presences.set(machineId, {
      link,
      heardAt: this.clock.monotonic(),
      dockerAvailable: true,
      diskFreeGb: null,
      obstacle: '',
    });
  }

  /** Forgets a stream; one that was fenced already changes nothing. True when it was the current one. */
  detach(machineId: string, link: HostLink): boolean {
    return this.isCurrent(machineId, link) && this.presences.delete(machineId);
  }

  /** Whether a host may say so much more; one that may not is shunned for a minute. */
  takes(machineId: string, what: 'facts' | 'logs', units: number): boolean {
    const now = this.clock.monotonic();
    const intake = this.intakes.get(machineId) ?? new Intake();
    this.intakes.set(machineId, intake);
    if (intake.takes(what, units, now)) return true;
    this.shunnedUntil.set(machineId, now + SHUNNED_MS);
    return false;
  }

  isShunned(machineId: string): boolean {
    return (this.shunnedUntil.get(machineId) ?? -Infinity) > this.clock.monotonic();
  }

  isCurrent(machineId: string, link: HostLink): boolean {
    return this.presences.get(machineId)?.link === link;
  }

  heard(machineId: string): void {
    const presence = this.presences.get(machineId);
    if (presence) presence.heardAt = this.clock.monotonic();
  }

  setDockerAvailable(machineId: string, available: boolean): void {
    const presence = this.presences.get(machineId);
    if (presence) presence.dockerAvailable = available;
  }

  setDiskFree(machineId: string, gb: number): void {
    const presence = this.presences.get(machineId);
    if (presence) presence.diskFreeGb = gb;
  }

  setObstacle(machineId: string, obstacle: string): void {
    const presence = this.presences.get(machineId);
    if (presence) presence.obstacle = obstacle;
  }

  setRunning(machineId: string, runs: ReadonlyMap<string, HeardRun>): void {
    this.running.set(machineId, { at: this.clock.monotonic(), runs });
  }

  /** What a host has last said of an instance that ran, and how many milliseconds ago; since the start of the control plane. */
  lastHeard(machineId: string, instanceId: string): (HeardRun & { agoMs: number }) | undefined {
    const heard = this.running.get(machineId);
    const run = heard?.runs.get(instanceId);
    return heard && run && { ...run, agoMs: Math.ceil(this.clock.monotonic() - heard.at) };
  }

  /** Why a host that is connected takes nothing new, in its own words; null: it does, or nobody knows. */
  obstacleOf(machineId: string): string | null {
    return this.presences.get(machineId)?.obstacle || null;
  }

  /** What a new disk may take at most, as far as the host has said. */
  diskFreeGb(machineId: string): number {
    return this.presences.get(machineId)?.diskFreeGb ?? Infinity;
  }

  isConnected(machineId: string): boolean {
    const presence = this.presences.get(machineId);
    return presence !== undefined && this.clock.monotonic() - presence.heardAt <= LIVENESS_LIMIT_MS;
  }

  /** Connected, and able to run something new. */
  isReady(machineId: string): boolean {
    return this.troubleOf(machineId) === null;
  }

  /** What keeps the host from running something new; null: nothing does. */
  troubleOf(machineId: string): HostTrouble | null {
    const presence = this.presences.get(machineId);
    if (!presence || !this.isConnected(machineId)) return 'host_away';
    if (!presence.dockerAvailable) return 'docker_down';
    return presence.obstacle === '' ? null : 'obstacle';
  }

  /** Connected, and its queue has room. */
  canTake(machineId: string): boolean {
    return this.isConnected(machineId) && this.presences.get(machineId)?.link.congested === false;
  }

  connectedIds(): string[] {
    return [...this.presences.keys()].filter((machineId) => this.isConnected(machineId));
  }

  /** False when the host is not connected or its queue is full. */
  send(machineId: string, message: ControlMessage): boolean {
    return this.presences.get(machineId)?.link.send(message) ?? false;
  }

  /** Ends the stream of one host, if it has one. */
  close(machineId: string, reason: string): void {
    this.presences.get(machineId)?.link.close(reason);
  }

  closeAll(reason: string): void {
    for (const { link } of this.presences.values()) link.close(reason);
  }
}
