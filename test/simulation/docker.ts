import { Failure } from '../../agent/domain/failure.js';
import {
  infoOf,
  type DockerWatch,
  type WorkloadSummary,
  type LogLine,
  type OnProgress,
  type ExistingWorkload,
  type Runtime,
  type Workload,
} from '../../agent/runtime/workload.js';
import type { Clock } from '../../shared/clock.js';
import type { WorkloadSpec } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { Faults, Moment } from './faults.js';
import type { Random } from './random.js';
import { ProcessHandle, type Timeline } from './timeline.js';
import type { Witness } from './machine-view.js';

export interface DockerFaults {
  /** Probabilities a call. */
  failure: number;
  /** Passes its deadline without an answer, and lands later, or never. */
  late: number;
  diskFull: number;
}

interface Container {
  workload: ExistingWorkload;
  generation: number;
}

const DEADLINE_MS = 30_000;
const PORTS = { first: 20_000, last: 20_999 };

/** The Docker Engine of one host with its containers, which outlive every agent. Holds what really is. */
export class SimDocker {
  readonly containers = new Map<string, Container>();
  /** The daemon; a new life for each of its runs. */
  daemon = new ProcessHandle();
  up = true;
  startedAt = 0;
  /** Instances that were given a container after an earlier one of theirs had been up for their renters, and when. */
  readonly remade: [string, number][] = [];
  /** Instances whose container an agent has removed after it had been up for its renter, and when. */
  readonly removed: [string, number][] = [];
  readonly everStarted = new Set<string>();
  /** GPUs seen in two running containers at once. */
  readonly sharedGpus: string[] = [];
  listeners: (() => void)[] = [];
  private streams: (() => void)[] = [];
  private generation = 0;
  calls = 0;
  failed = 0;
  late = 0;

  constructor(
    readonly timeline: Timeline,
    readonly random: Random,
    readonly fate: Faults,
    readonly faults: DockerFaults,
    readonly wall: Clock,
    readonly witness: Witness,
    readonly note: (what: string) => void,
  ) {}

  running(): ExistingWorkload[] {
    return [...this.containers.values()].map(({ workload }) => workload).filter(({ state }) => state === 'running');
  }

  start(instanceId: string): void {
    const container = this.containers.get(instanceId);
    if (!container) throw new Failure('CONTAINER_FAILED', 'no such container');
    const { workload } = container;
    if (workload.state === 'running') return;
    const { gpuUuids } = workload;
    container.workload = { ...infoOf(workload), state: 'running', startedAt: this.wall.now(), address: '' };
    this.everStarted.add(instanceId);
    this.note(`docker starts ${instanceId}`);
    this.witness.processes(instanceId, true, this.timeline.now);
    this.witness.comesUp(instanceId);
    for (const other of this.running()) {
      if (other.instanceId !== instanceId && other.gpuUuids.some((uuid) => gpuUuids.includes(uuid))) {
        this.sharedGpus.push(`${instanceId} and ${other.instanceId}`);
      }
    }
    this.event();
  }

  /** An agent decides to make a container; a call that lands late was decided before. */
  willCreate(instanceId: string): void {
    const wasUp = this.everStarted.has(instanceId) && this.witness.started.has(instanceId);
    if (wasUp) this.remade.push([instanceId, this.timeline.now]);
  }

  create(instanceId: string, sequence: number, spec: WorkloadSpec): void {
    if (this.containers.has(instanceId)) throw new Failure('CONTAINER_FAILED', 'the name is taken');
    const used = [...this.containers.values()].map(({ workload }) => workload.sshPort);
    let sshPort: number | null = null;
    if (spec.sshAuthorizedKey !== '') for (sshPort = PORTS.first; used.includes(sshPort); sshPort++);
    const { gpuUuids, diskGb, image, origin } = spec;
    const kind = 'container' as const;
    const info = { instanceId, kind, sequence, gpuUuids, diskGb, sshPort, ports: [], tokenHash: '', image, origin };
    const workload = { ...info, state: 'created' as const };
    this.containers.set(instanceId, { workload, generation: this.generation++ });
    this.note(`docker creates ${instanceId}`);
  }

  /** It is told to end, and does. */
  stop(instanceId: string): void {
    this.witness.interrupted(instanceId);
    this.exit(instanceId, 143);
  }

  /** The process ends; Docker says so at once. */
  exit(instanceId: string, exitCode: number): void {
    const container = this.containers.get(instanceId);
    if (container?.workload.state !== 'running') return;
    this.note(`docker ends ${instanceId} with ${exitCode}`);
    this.witness.processes(instanceId, false, this.timeline.now);
    const { startedAt } = container.workload;
    const ended = { finishedAt: this.wall.now(), exitCode, outOfMemory: false };
    container.workload = { ...infoOf(container.workload), state: 'stopped', startedAt, ...ended };
    this.event();
  }

  remove(instanceId: string): void {
    this.note(`docker removes ${instanceId}`);
    this.witness.interrupted(instanceId);
    this.witness.processes(instanceId, false, this.timeline.now);
    // Of a container that has never started nothing is lost, whatever an earlier one of the instance held.
    const hasRun = this.containers.get(instanceId)?.workload.state !== 'created';
    const wasUp = hasRun && this.witness.started.has(instanceId);
    if (this.containers.delete(instanceId) && wasUp) this.removed.push([instanceId, this.timeline.now]);
    this.event();
  }

  /** The daemon goes down. Without live-restore it kills everything first, and says that each has ended. */
  stopDaemon(liveRestore: boolean): void {
    if (!this.up) return;
    this.note(`docker stops${liveRestore ? ' alone' : ''}`);
    for (const { instanceId } of liveRestore ? [] : this.running()) {
      this.witness.interrupted(instanceId);
      this.exit(instanceId, 0);
    }
    this.up = false;
    this.daemon.alive = false;
    for (const end of this.streams.splice(0)) end();
  }

  startDaemon(): void {
    if (this.up) return;
    this.up = true;
    this.startedAt = this.wall.now();
    this.daemon = new ProcessHandle();
  }

  /** The kernel goes away under everything. */
  powerOff(): void {
    this.note('power off');
    this.up = false;
    this.daemon.alive = false;
    for (const end of this.streams.splice(0)) end();
    for (const container of this.containers.values()) {
      if (container.workload.state !== 'running') continue;
      const { instanceId, startedAt } = container.workload;
      this.witness.interrupted(instanceId);
      this.witness.processes(instanceId, false, this.timeline.now);
      const ended = { finishedAt: this.wall.now(), exitCode: 137, outOfMemory: false };
      container.workload = { ...infoOf(container.workload), state: 'stopped', startedAt, ...ended };
    }
  }

  onEnd(end: () => void): void {
    this.streams.push(end);
  }

  private event(): void {
    for (const tell of Array.from(this.listeners)) tell();
  }
}

/** One agent's hold on Docker: it forgets everything when the agent ends, and Docker goes on. */
export class SimRuntime implements Runtime, DockerWatch {
  private readonly unanswered = new Map<string, Promise<void>>();

  constructor(
    private readonly docker: SimDocker,
    private readonly agent: ProcessHandle,
    /** What interrupts an agent in the middle of a call: before or after it has taken effect. */
    private readonly interrupt: (moment: Moment, what: string) => void,
  ) {}

  async find(instanceId: string): Promise<Workload> {
    await this.reach();
    return this.docker.containers.get(instanceId)?.workload ?? { state: 'absent' };
  }

  async list(): Promise<WorkloadSummary[]> {
    await this.reach();
    return [...this.docker.containers.values()].map(({ workload }) => workload);
  }

  async fetchImage(_spec: WorkloadSpec, onProgress: OnProgress, signal: AbortSignal): Promise<void> {
    onProgress('pulling', 'pulling the image');
    await this.wait(this.docker.random.between(10, 20_000));
    signal.throwIfAborted();
    const { fate, faults } = this.docker;
    if (fate.strikes('a Docker call fails', faults.failure)) throw new Failure('IMAGE_UNAVAILABLE', 'no such image');
  }

  async create(instanceId: string, sequence: number, spec: WorkloadSpec): Promise<void> {
    this.docker.willCreate(instanceId);
    if (this.docker.random.chance(this.docker.faults.diskFull)) {
      throw new Failure('CONTAINER_FAILED', 'no space left on device');
    }
    try {
      await this.call(instanceId, 'create', () => this.docker.create(instanceId, sequence, spec));
      await this.call(instanceId, 'start', () => this.docker.start(instanceId));
    } catch (error) {
      // A call without an answer may still land: what it leaves is somebody else's to find.
      if (error instanceof Failure && error.code !== 'DOCKER_TIMEOUT') {
        const made = this.docker.containers.get(instanceId)?.workload;
        if (made?.state === 'created' && this.docker.up && this.agent.alive) this.docker.containers.delete(instanceId);
      }
      throw error;
    }
  }

  start(instanceId: string): Promise<void> {
    return this.call(instanceId, 'start', () => this.docker.start(instanceId));
  }

  stop(instanceId: string): Promise<void> {
    return this.call(instanceId, 'stop', () => this.docker.stop(instanceId), 12_000);
  }

  remove(instanceId: string): Promise<void> {
    return this.call(instanceId, 'remove', () => this.docker.remove(instanceId));
  }

  async replaceAccess(): Promise<{ sshKeyStays: boolean }> {
    await this.reach();
    return { sshKeyStays: false };
  }

  async tail(): Promise<LogLine[]> {
    await this.reach();
    return [];
  }

  async *follow(): AsyncGenerator<LogLine[]> {
    yield* [];
  }

  async sshAnswers(): Promise<boolean> {
    return !this.docker.random.chance(this.docker.faults.failure);
  }

  async checkPorts(): Promise<void> {}

  unansweredCalls(): [] {
    return [];
  }

  hasUnanswered(instanceId: string): boolean {
    return this.unanswered.has(instanceId);
  }

  async whenIdle(instanceId: string): Promise<void> {
    await this.unanswered.get(instanceId);
  }

  async isAvailable(): Promise<boolean> {
    return this.docker.up;
  }

  async startedAt(): Promise<number> {
    return this.docker.startedAt;
  }

  async keepsWorkloads(): Promise<boolean> {
    return false;
  }

  events(onEvent: (instanceId: string) => void, signal: AbortSignal): Promise<void> {
    if (!this.docker.up) return Promise.reject(new Failure('DOCKER_UNREACHABLE', 'Docker is down'));
    return new Promise((resolve) => {
      const tell = () => void this.docker.timeline.schedule(this.agent, 1, () => onEvent(''));
      const end = () => {
        this.docker.listeners = this.docker.listeners.filter((other) => other !== tell);
        resolve();
      };
      this.docker.listeners.push(tell);
      this.docker.onEnd(() => void this.docker.timeline.schedule(this.agent, 1, end));
      signal.addEventListener('abort', end);
    });
  }

  private async reach(): Promise<void> {
    await this.living();
    if (!this.docker.up) throw new Failure('DOCKER_UNREACHABLE', 'Docker is down');
  }

  /** A program that was killed goes no further. */
  private living(): Promise<void> {
    return this.agent.alive ? Promise.resolve() : new Promise<never>(() => {});
  }

  /** A call that changes something: it may fail, or pass its deadline and land afterwards. */
  private async call(instanceId: string, name: string, effect: () => void, longestMs = 2_000): Promise<void> {
    await this.reach();
    const { docker } = this;
    const { random, fate, faults, daemon } = docker;
    docker.calls += 1;
    this.interrupt('before a Docker call', `${name} ${instanceId}`);
    await this.living();
    if (fate.strikes('a Docker call fails', faults.failure)) {
      docker.failed += 1;
      docker.note(`docker fails to ${name} ${instanceId}`);
      await this.wait(random.between(1, 500));
      throw new Failure('CONTAINER_FAILED', `${name} failed`);
    }
    if (fate.strikes('a Docker call is late', faults.late)) return this.landLate(instanceId, name, effect);
    await this.wait(random.between(1, longestMs));
    if (!daemon.alive) throw new Failure('DOCKER_UNREACHABLE', 'Docker went down');
    effect();
    this.interrupt('after a Docker call', `${name} ${instanceId}`);
    await this.living();
  }

  private async landLate(instanceId: string, name: string, effect: () => void): Promise<void> {
    const { docker } = this;
    docker.late += 1;
    docker.note(`docker is late to ${name} ${instanceId}`);
    const { daemon, timeline, random } = docker;
    const lands = random.chance(0.7);
    // What it is about was looked up when the daemon took it: another container of the same name, or for a stop another run
    // of it, is none of its business.
    const target = this.targetOf(instanceId, name);
    const known = new Promise<void>((resolve) => {
      // It is the daemon's now: it lands though the agent is gone, unless the daemon is, too.
      timeline.schedule(new ProcessHandle(), DEADLINE_MS + random.between(1, 60_000), () => {
        if (daemon.alive && lands && this.targetOf(instanceId, name) === target) {
          try {
            effect();
          } catch {
            // It has failed late.
          }
        }
        resolve();
      });
    });
    const answered = known.then(() => {
      if (this.unanswered.get(instanceId) === answered) this.unanswered.delete(instanceId);
    });
    this.unanswered.set(instanceId, answered);
    await this.wait(DEADLINE_MS);
    throw new Failure('DOCKER_TIMEOUT', `${name} was not answered within ${DEADLINE_MS / 1000} s`);
  }

  private targetOf(instanceId: string, call: string): string | undefined {
    const container = this.docker.containers.get(instanceId);
    if (!container) return undefined;
    const { generation, workload } = container;
    const run = call === 'stop' && workload.state !== 'created' ? workload.startedAt : 0;
    return `${generation} ${run}`;
  }

  private wait(ms: number): Promise<void> {
    return new Promise((resolve) => void this.docker.timeline.schedule(this.agent, ms, resolve));
  }
}
