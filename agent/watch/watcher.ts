import type { Clock, Timer } from '../../shared/clock.js';
import { messageOf } from '../../shared/coded-error.js';
import type { PaidTime } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { Logger } from '../../shared/logger.js';
import { PacedLog } from '../../shared/paced-log.js';
import type { Executor } from '../commands/executor.js';
import { troubleOf } from '../domain/failure.js';
import type { GpuAccess } from '../commands/gpu-access.js';
import type { Observer } from '../observation/observer.js';
import type { RunRecorder } from '../observation/run-recorder.js';
import type { GuardedPorts } from '../guarded-ports/guarded-ports.js';
import type { Desired, Journal } from '../journal/journal.js';
import type { Outbox } from '../link/outbox.js';
import type { DockerWatch, Runtime, WorkloadInfo, Workload } from '../runtime/workload.js';
import { CONFIRM_MS, type OutageTracker } from '../outages/outage-tracker.js';
import type { PaidTimes } from './paid-times.js';

const COMPARE_EVERY_MS = 30_000;
const RECONNECT_MS = 1_000;

/** How this host and what runs on it is seen. */
export interface Dependencies {
  runtime: Omit<Runtime, 'stop' | 'remove'>;
  remover: RunRecorder;
  docker: DockerWatch;
  outages: OutageTracker;
  observer: Observer;
  guardedPorts: GuardedPorts;
  gpuAccess: GpuAccess;
  paidTimes: PaidTimes;
}

const CAME_BACK = 'the host or its Docker went away; the workload was started again';
const PAID_AGAIN =
  'the control plane was out of reach when the time that was paid for had ended, so the host had stopped the workload; it was started again';

/** Notices what no command has asked for: workloads that ended, were interrupted, have vanished, or are paid for no more. */
export class Watcher {
  private readonly stopping = new AbortController();
  /** Ends that are not believed yet. */
  private readonly doubted = new Map<string, { startedAt: number; since: number }>();
  /** Runs that were stopped because nobody said that they are paid for: when each was started, by its instance. */
  private readonly halted = new Map<string, number>();
  private comparingSoon = false;
  private timers = new Set<Timer>();

  constructor(
    private readonly dependencies: Dependencies,
    private readonly executor: Executor,
    private readonly journal: Journal,
    private readonly outbox: Outbox,
    private readonly clock: Clock,
    private readonly logger: Logger,
    private readonly paced = new PacedLog(clock, logger),
  ) {}

  start(): void {
    this.listen();
    this.compareEvery();
  }

  stop(): void {
    this.stopping.abort();
    for (const timer of this.timers) timer.cancel();
  }

  /** Compares every workload that should run with Docker's word. */
  async compare(): Promise<void> {
    if (!(await this.dependencies.outages.look())) return;
    const instances = this.journal.instances();
    const running = new Set(
      instances.flatMap(({ instanceId, desired }) => (desired === 'running' ? [instanceId] : [])),
    );
    for (const noted of [this.doubted, this.halted])
      for (const instanceId of noted.keys()) if (!running.has(instanceId)) noted.delete(instanceId);
    this.dependencies.paidTimes.count([...running]);
    await Promise.all([...running].map((instanceId) => this.check(instanceId)));
    const listed = await this.dependencies.runtime.list();
    const desiredOf = new Map(instances.map(({ instanceId, desired }) => [instanceId, desired]));
    const unwanted = listed.filter(({ instanceId, state }) => {
      const desired = desiredOf.get(instanceId);
      return desired === 'absent' || (isDown(desired) && state === 'running');
    });
    for (const { instanceId } of unwanted) void this.attempt(() => this.enforce(instanceId));
    // Not waited for: a GPU may be slow to come back.
    void this.attempt(() => this.dependencies.gpuAccess.reclaim((instanceId) => this.isMeantToRun(instanceId)));
  }

  private isMeantToRun(instanceId: string): boolean {
    return this.executor.isBusy(instanceId) || this.journal.instance(instanceId)?.desired === 'running';
  }

  private async check(instanceId: string): Promise<void> {
    if (this.executor.isBusy(instanceId) || this.journal.isUnfinished(instanceId)) return;
    await this.executor.exclusively(instanceId, async () => {
      if (this.journal.instance(instanceId)?.desired !== 'running') return;
      const workload = await this.found(instanceId);
      if (workload.state === 'running') await this.haltUnpaid(instanceId, workload);
      else if (workload.state === 'stopped') await this.judge(instanceId, workload);
      else await this.reportEnd(instanceId, workload);
    });
  }

  /** The control plane has said for how long instances are paid for. */
  hearPaidTimes(told: readonly PaidTime[]): void {
    const { paidTimes } = this.dependencies;
    const wasOver = told.some(({ instanceId }) => paidTimes.isOver(instanceId));
    paidTimes.hear(told);
    if (wasOver) void this.attempt(() => this.compare());
  }

  /** It is marked as interrupted, and so brought back once the control plane says that it is paid for. */
  private async haltUnpaid(instanceId: string, workload: Extract<Workload, { state: 'running' }>): Promise<void> {
    if (!this.dependencies.paidTimes.isOver(instanceId)) return;
    this.logger.warn({ instanceId }, 'nothing was heard of the control plane since the paid time ended: it is stopped');
    this.dependencies.outages.markStopped(workload);
    this.halted.set(instanceId, workload.startedAt);
    await this.dependencies.remover.stop(instanceId);
  }

  private async found(instanceId: string): Promise<Workload> {
    const workload = await this.dependencies.runtime.find(instanceId);
    await this.dependencies.guardedPorts.note(instanceId, workload);
    return workload;
  }

  /** A link of a running workload has appeared. */
  reportLink(instanceId: string): void {
    void this.attempt(() =>
      this.executor.exclusively(instanceId, async () => {
        const workload = await this.dependencies.runtime.find(instanceId);
        if (workload.state !== 'running' || this.journal.instance(instanceId)?.desired !== 'running') return;
        const observation = this.dependencies.observer.observe(workload);
        this.outbox.report(this.journal.report({ instanceId, observation, note: '' }, this.clock.now()));
      }),
    );
  }

  /** A Docker call that an agent before this one has left unanswered can land after all: what was done is done again. */
  private async enforce(instanceId: string): Promise<void> {
    if (this.executor.isBusy(instanceId) || this.journal.isUnfinished(instanceId)) return;
    await this.executor.exclusively(instanceId, async () => {
      const desired = this.journal.instance(instanceId)?.desired;
      if (desired !== 'absent' && !isDown(desired)) return;
      const message = 'a workload is there that should not be';
      this.paced.write('warn', message, { instanceId, desired }, `${instanceId} ${message}`);
      await (desired === 'absent'
        ? this.dependencies.remover.remove(instanceId)
        : this.dependencies.remover.stop(instanceId));
    });
  }

  /** What was made, never started, and is not `known` to the control plane holds nothing of a renter's: it is removed. */
  dropUnstarted(known: ReadonlySet<string>): void {
    void this.attempt(async () => {
      const listed = await this.dependencies.runtime.list();
      const orphans = listed.filter(({ instanceId, state }) => state === 'created' && !known.has(instanceId));
      await Promise.all(orphans.map(({ instanceId }) => this.drop(instanceId)));
    });
  }

  private async drop(instanceId: string): Promise<void> {
    if (this.executor.isBusy(instanceId)) return;
    await this.executor.exclusively(instanceId, async () => {
      if ((await this.dependencies.runtime.find(instanceId)).state !== 'created') return;
      this.logger.warn({ instanceId }, 'a workload that was never started is not known any more');
      this.journal.setDesired(instanceId, 'absent');
      await this.dependencies.remover.remove(instanceId);
    });
  }

  private async judge(instanceId: string, workload: Extract<Workload, { state: 'stopped' }>): Promise<void> {
    const available = await this.dependencies.docker.isAvailable();
    const age = Math.max(
      this.clock.monotonic() - this.noticed(instanceId, workload),
      this.clock.now() - workload.finishedAt,
    );
    const settled = age >= CONFIRM_MS;
    // Asked after the answer: a stream of events that has broken meanwhile tells of an outage that is not over.
    // A start that was given up may still land, and the workload run after all.
    const mayStart = this.dependencies.runtime.hasUnanswered(instanceId);
    if (!available || !this.dependencies.outages.dockerAvailable || !settled || mayStart) return this.compareSoon();
    if (!this.dependencies.outages.wasInterrupted(workload)) return this.reportEnd(instanceId, workload);
    if (this.dependencies.paidTimes.isOver(instanceId)) return;
    // Not waited for: one that is slow to start holds up no other, and not the way to the control plane.
    void this.attempt(() => this.executor.exclusively(instanceId, () => this.bringBack(instanceId)));
  }

  /** When this end was first seen, in monotonic time: a wall clock that has stepped back would doubt it for ever. */
  private noticed(instanceId: string, { startedAt }: Extract<Workload, { state: 'stopped' }>): number {
    const known = this.doubted.get(instanceId);
    if (known?.startedAt === startedAt) return known.since;
    const since = this.clock.monotonic();
    this.doubted.set(instanceId, { startedAt, since });
    return since;
  }

  /** Once, however many ends are in doubt: each comparison looks at them all. */
  private compareSoon(): void {
    if (this.comparingSoon) return;
    this.comparingSoon = true;
    this.later(CONFIRM_MS, () => {
      this.comparingSoon = false;
      return this.compare();
    });
  }

  private async reportEnd(instanceId: string, workload: Workload): Promise<void> {
    this.doubted.delete(instanceId);
    this.dependencies.remover.note(instanceId, workload);
    const observation = await this.dependencies.observer.observeWithLog(instanceId, workload);
    this.logger.info({ instanceId, state: workload.state }, 'a workload has ended by itself');
    this.outbox.report(this.journal.report({ instanceId, observation, note: '' }, this.clock.now(), 'ended'));
  }

  private async bringBack(instanceId: string): Promise<void> {
    const isStillWanted = this.journal.instance(instanceId)?.desired === 'running';
    const workload = await this.dependencies.runtime.find(instanceId);
    if (!isStillWanted || workload.state !== 'stopped') return;
    await this.startAgain(workload);
    const observation = this.dependencies.observer.observe(await this.found(instanceId));
    const note = this.halted.get(instanceId) === workload.startedAt ? PAID_AGAIN : CAME_BACK;
    this.logger.info({ instanceId }, note);
    this.outbox.report(this.journal.report({ instanceId, observation, note }, this.clock.now()));
  }

  /** Not while something else computes on its GPUs. Its renter is told why it is not back yet. */
  private async startAgain({ instanceId, gpuUuids }: WorkloadInfo): Promise<void> {
    const { gpuAccess, runtime } = this.dependencies;
    try {
      await gpuAccess.acquire(instanceId, gpuUuids, () => runtime.start(instanceId));
    } catch (error) {
      const message = `the host or its Docker went away, and the workload cannot be started again yet: ${messageOf(error)}; it is tried every ${COMPARE_EVERY_MS / 1000} seconds`;
      this.outbox.progress({ instanceId, kind: 'interrupted', message, gpusFree: false });
      throw error;
    }
  }

  private listen(): void {
    this.dependencies.docker
      .events(() => void this.attempt(() => this.compare()), this.stopping.signal)
      .catch((error: unknown) => this.fails("Docker's events cannot be followed", error))
      .finally(() => {
        if (this.stopping.signal.aborted) return;
        this.dependencies.outages.lost();
        this.later(RECONNECT_MS, async () => {
          this.listen();
          await this.compare();
        });
      });
  }

  private compareEvery(): void {
    this.later(COMPARE_EVERY_MS, async () => {
      this.compareEvery();
      await this.compare();
    });
  }

  private later(delayMs: number, work: () => Promise<void>): void {
    if (this.stopping.signal.aborted) return;
    const timer = this.clock.schedule(delayMs, () => {
      this.timers.delete(timer);
      void this.attempt(work);
    });
    this.timers.add(timer);
  }

  private async attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.fails('the comparison with Docker failed', error);
    }
  }

  private fails(what: string, error: unknown): void {
    const message = `${what}: ${messageOf(error)}`;
    this.paced.write('warn', message, {}, troubleOf(error, message));
  }
}

/** Whether no process of the instance is to be there. */
function isDown(desired: Desired | undefined): boolean {
  return desired === 'stopped' || desired === 'ended';
}
