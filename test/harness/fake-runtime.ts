import type { Clock } from '../../shared/clock.js';
import type { Access, PulledImage, WorkloadSpec } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { UnansweredCall } from '../../agent/domain/unanswered-call.js';
import { Failure } from '../../agent/domain/failure.js';
import { publishPorts } from '../../agent/domain/ports.js';
import {
  portsOf,
  infoOf,
  type WorkloadSummary,
  type LogLine,
  type OnProgress,
  type ExistingWorkload,
  type Runtime,
  type WorkloadInfo,
  type Workload,
} from '../../agent/runtime/workload.js';

interface FakeContainer {
  workload: ExistingWorkload;
  lines: LogLine[];
  ended: (() => void)[];
}

type Call = 'tail' | 'fetchImage' | 'create' | 'start' | 'stop' | 'remove' | 'find' | 'list' | 'replaceAccess';

/** Workloads in memory; calls can be made to wait or to fail. */
export class FakeRuntime implements Runtime {
  /** Every call that changes something, in order. */
  readonly calls: string[] = [];
  readonly images = new Set(['image:1']);
  /** What every image says of itself after its pull. */
  pulled: PulledImage | undefined;
  /** Ports that something else listens on. */
  readonly takenPorts = new Set<number>();
  sshUp = true;
  /** As where an older agent has made the workloads. */
  keysStay = false;
  /** How often somebody has waited for an unanswered call. */
  settledAsked = 0;
  private readonly containers = new Map<string, FakeContainer>();
  private readonly gates = new Map<Call, Promise<void>>();
  private readonly failures = new Map<Call, Error[]>();
  private readonly unanswered = new Map<string, { answered: Promise<void>; since: number }>();

  constructor(
    private readonly clock: Clock,
    private readonly ports = { first: 40_000, last: 40_009 },
  ) {}

  /** Holds calls of this kind until the function answered is called. */
  hold(call: Call): () => void {
    let open = () => {};
    this.gates.set(call, new Promise((resolve) => (open = resolve)));
    return () => {
      this.gates.delete(call);
      open();
    };
  }

  /** Calls of this kind that come from now on are held no longer; those that wait go on waiting, as in a process that died. */
  letGo(call: Call): void {
    this.gates.delete(call);
  }

  /** Makes the next call of this kind throw. */
  failNext(call: Call, error: Error): void {
    this.failures.set(call, [...(this.failures.get(call) ?? []), error]);
  }

  /** A call of the instance has passed its deadline; the function answered tells its outcome at last. */
  leaveUnanswered(instanceId: string): () => void {
    let answer = () => {};
    const answered = new Promise<void>((resolve) => (answer = resolve));
    this.unanswered.set(instanceId, { answered, since: this.clock.monotonic() });
    return () => {
      this.unanswered.delete(instanceId);
      answer();
    };
  }

  /** The workload ends by itself. */
  exit(instanceId: string, exitCode: number, outOfMemory = false): void {
    const container = this.get(instanceId);
    const { workload } = container;
    if (workload.state !== 'running') throw new Error(`${instanceId} does not run`);
    container.workload = { ...workload, state: 'stopped', finishedAt: this.clock.now(), exitCode, outOfMemory };
    for (const end of container.ended.splice(0)) end();
  }

  /** The agent that made it has died before it could start it. */
  unstart(instanceId: string): void {
    const container = this.get(instanceId);
    container.workload = { ...infoOf(container.workload), state: 'created' };
  }

  /** Somebody removes it behind the agent's back. */
  vanish(instanceId: string): void {
    this.containers.delete(instanceId);
  }

  print(instanceId: string, text: string): void {
    const { lines, ended } = this.get(instanceId);
    lines.push({ at: `2026-01-01T00:00:00.${String(lines.length).padStart(9, '0')}Z`, text });
    for (const wake of ended.splice(0)) wake();
  }

  async find(instanceId: string): Promise<Workload> {
    await this.enter('find');
    return this.containers.get(instanceId)?.workload ?? { state: 'absent' };
  }

  async list(): Promise<WorkloadSummary[]> {
    await this.gates.get('list');
    return [...this.containers.values()].map(({ workload }) => workload);
  }

  async fetchImage(spec: WorkloadSpec, onProgress: OnProgress, signal: AbortSignal): Promise<void> {
    if (this.pulled) onProgress('pulled', `pulled ${spec.image}`, this.pulled);
    if (this.images.has(spec.image)) return;
    onProgress('pulling', `pulling ${spec.image}`);
    const aborted = new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    await Promise.race([this.enter('fetchImage'), aborted]);
    throw new Failure('IMAGE_UNAVAILABLE', `the image ${spec.image} cannot be pulled: not found`);
  }

  async create(instanceId: string, sequence: number, spec: WorkloadSpec): Promise<void> {
    this.calls.push(`create ${instanceId}`);
    await this.enter('create');
    const count = spec.ports.length + (spec.sshAuthorizedKey === '' ? 0 : 1);
    const hostPorts = this.choosePorts(count);
    const sshPort = spec.sshAuthorizedKey === '' ? null : (hostPorts.shift() ?? null);
    const { gpuUuids, diskGb, image, origin } = spec;
    const ports = publishPorts(spec.ports, hostPorts);
    const kind = spec.virtualMachine ? ('vm' as const) : ('container' as const);
    const info = { instanceId, kind, sequence, gpuUuids, diskGb, sshPort, ports, tokenHash: '', image, origin };
    this.containers.set(instanceId, { workload: this.run(info), lines: [], ended: [] });
  }

  async start(instanceId: string): Promise<void> {
    this.calls.push(`start ${instanceId}`);
    await this.enter('start');
    const container = this.get(instanceId);
    container.workload = this.run(infoOf(container.workload));
  }

  async stop(instanceId: string): Promise<void> {
    this.calls.push(`stop ${instanceId}`);
    await this.enter('stop');
    if (this.containers.get(instanceId)?.workload.state === 'running') this.exit(instanceId, 143);
  }

  async remove(instanceId: string): Promise<void> {
    this.calls.push(`remove ${instanceId}`);
    await this.enter('remove');
    const container = this.containers.get(instanceId);
    this.containers.delete(instanceId);
    for (const end of container?.ended.splice(0) ?? []) end();
  }

  async replaceAccess(instanceId: string, { tokenHash }: Access): Promise<{ sshKeyStays: boolean }> {
    await this.enter('replaceAccess');
    const container = this.containers.get(instanceId);
    if (container) container.workload = { ...container.workload, tokenHash };
    return { sshKeyStays: this.keysStay };
  }

  async tail(instanceId: string, count: number): Promise<LogLine[]> {
    await this.enter('tail');
    return (this.containers.get(instanceId)?.lines ?? []).slice(-count);
  }

  async *follow(instanceId: string, since: string, signal: AbortSignal, newest = Infinity): AsyncGenerator<LogLine[]> {
    let [last, most] = [since, newest];
    while (!signal.aborted) {
      const container = this.containers.get(instanceId);
      const lines = container?.lines.filter(({ at }) => at > last).slice(-most) ?? [];
      most = Infinity;
      last = lines.at(-1)?.at ?? last;
      if (lines.length > 0) yield lines;
      else if (container?.workload.state !== 'running') return;
      else await new Promise<void>((resolve) => container.ended.push(resolve));
    }
  }

  async sshAnswers(): Promise<boolean> {
    return this.sshUp;
  }

  async checkPorts(workload: WorkloadInfo): Promise<void> {
    const port = portsOf(workload).find((each) => this.takenPorts.has(each));
    if (port !== undefined) throw new Failure('PORT_TAKEN', `port ${port} of this instance is used by another process`);
  }

  unansweredCalls(): UnansweredCall[] {
    return [...this.unanswered].map(([instanceId, { since }]) => {
      return { instanceId, what: 'start the container', ms: this.clock.monotonic() - since };
    });
  }

  hasUnanswered(instanceId: string): boolean {
    return this.unanswered.has(instanceId);
  }

  async whenIdle(instanceId: string): Promise<void> {
    if (this.unanswered.has(instanceId)) this.settledAsked += 1;
    await this.unanswered.get(instanceId)?.answered;
  }

  private choosePorts(count: number): number[] {
    const used = [...this.containers.values()].flatMap(({ workload }) => portsOf(workload));
    const free: number[] = [];
    for (let port = this.ports.first; port <= this.ports.last && free.length < count; port++) {
      if (!this.takenPorts.has(port) && !used.includes(port)) free.push(port);
    }
    if (free.length === count) return free;
    throw new Failure('NO_FREE_PORT', `no port of ${this.ports.first}-${this.ports.last} is free on this host`);
  }

  private run(info: WorkloadInfo): ExistingWorkload {
    return { ...info, state: 'running', startedAt: this.clock.now(), address: '127.0.0.1' };
  }

  private async enter(call: Call): Promise<void> {
    await this.gates.get(call);
    const error = this.failures.get(call)?.shift();
    if (error) throw error;
  }

  private get(instanceId: string): FakeContainer {
    const container = this.containers.get(instanceId);
    if (!container) throw new Error(`there is no ${instanceId}`);
    return container;
  }
}
