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

/** What the watcher uses to see the host and its workloads. */
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

const WENT_AWAY = 'the host or its Docker went away';
const UNPAID = 'the control plane was out of reach when the paid time ended, so the host stopped the workload';

/**
 * Notices changes that no command asked for: workloads that ended, were interrupted, have vanished, or whose paid time is over.
 */
export class Watcher {
  private readonly stopping = new AbortController();
  /** By instance: an exit that is not confirmed yet. */
  private readonly doubted = new Map<string, { startedAt: number; since: number }>();
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

  /** Compares the workloads that should run, and those that should not, with what Docker shows. */
  async compare(): Promise<void> {
    if (!(await this.dependencies.outages.look())) return;
    const instances = this.journal.instances();
    const running = new Set(
      instances.flatMap(({ instanceId, desired }) => (desired === 'running' ? [instanceId] : [])),
    );
    for (const instanceId of this.doubted.keys()) if (!running.has(instanceId)) this.doubted.delete(instanceId);
    this.dependencies.paidTimes.count([...running]);
    await Promise.all([...running].map((instanceId) => this.check(instanceId)));
    const listed = await this.dependencies.runtime.list();
    const desiredOf = new Map(instances.map(({ instanceId, desired }) => [instanceId, desired]));
    const unwanted = listed.filter(({ instanceId, state }) => {
      const desired = desiredOf.get(instanceId);
      return desired === 'absent' || (isDown(desired) && state === 'running');
    });
    for (const { instanceId } of unwanted) void this.attempt(() => this.enforce(instanceId));
    // Not awaited: a GPU can take long to return to its driver.
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

  /** Takes the paid times that the control plane has sent, and compares at once where one of them had run out. */
  hearPaidTimes(told: readonly PaidTime[]): void {
    const { paidTimes } = this.dependencies;
    const wasOver = told.some(({ instanceId }) => paidTimes.isOver(instanceId));
    paidTimes.hear(told);
    if (wasOver) void this.attempt(() => this.compare());
  }

  /**
   * Stops a workload whose paid time is over. It counts as interrupted, so it is started again once the control plane says that
   * it is
   * paid for.
   */
  private async haltUnpaid(instanceId: string, workload: Extract<Workload, { state: 'running' }>): Promise<void> {
    const { outages } = this.dependencies;
    const noteFailed = (error: unknown) => this.fails('the file of halted runs cannot be written', error);
    if (!this.dependencies.paidTimes.isOver(instanceId)) return outages.unmarkHalted(workload).catch(noteFailed);
    this.logger.warn(
      { instanceId },
      'the paid time is over and the control plane has sent no more: stopping the workload',
    );
    // The workload is stopped in any case: nobody pays for it.
    await outages.markHalted(workload).catch(noteFailed);
    await this.dependencies.remover.stop(instanceId);
  }

  private async found(instanceId: string): Promise<Workload> {
    const workload = await this.dependencies.runtime.find(instanceId);
    await this.dependencies.guardedPorts.note(instanceId, workload);
    return workload;
  }

  /** Reports a running workload of which a link has appeared. */
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

  /**
   * Stops or removes a workload again. A Docker call that an earlier agent left unanswered may have landed after the workload
   * was
   * stopped or removed.
   */
  private async enforce(instanceId: string): Promise<void> {
    if (this.executor.isBusy(instanceId) || this.journal.isUnfinished(instanceId)) return;
    await this.executor.exclusively(instanceId, async () => {
      const desired = this.journal.instance(instanceId)?.desired;
      if (desired !== 'absent' && !isDown(desired)) return;
      const message = 'a workload exists or runs that should not; stopping or removing it';
      this.paced.write('warn', message, { instanceId, desired }, `${instanceId} ${message}`);
      await (desired === 'absent'
        ? this.dependencies.remover.remove(instanceId)
        : this.dependencies.remover.stop(instanceId));
    });
  }

  /**
   * Removes workloads that were created, never started, and are not in `known` to the control plane: they hold no renter's
   * data.
   */
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
      this.logger.warn(
        { instanceId },
        'removing a workload that was never started and that the control plane does not know',
      );
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
    // Asked after isAvailable: a stream of events that broke meanwhile means an outage that is not over. A start that was
    // abandoned may
    // still land, so that the workload runs after all.
    const mayStart = this.dependencies.runtime.hasUnanswered(instanceId);
    if (!available || !this.dependencies.outages.dockerAvailable || !settled || mayStart) return this.compareSoon();
    if (!this.dependencies.outages.wasInterrupted(workload)) return this.reportEnd(instanceId, workload);
    if (this.dependencies.paidTimes.isOver(instanceId)) return;
    // Not awaited: a workload that is slow to start must delay neither the others nor the connection to the control plane.
    void this.attempt(() => this.executor.exclusively(instanceId, () => this.bringBack(instanceId)));
  }

  /**
   * Returns when this exit was first seen, in monotonic time: after a wall clock that was set back, `finishedAt` would doubt it
   * for
   * ever.
   */
  private noticed(instanceId: string, { startedAt }: Extract<Workload, { state: 'stopped' }>): number {
    const known = this.doubted.get(instanceId);
    if (known?.startedAt === startedAt) return known.since;
    const since = this.clock.monotonic();
    this.dependencies.observer.noteDown({ instanceId, startedAt });
    this.doubted.set(instanceId, { startedAt, since });
    return since;
  }

  /** Compares again after CONFIRM_MS: once, however many exits are in doubt, since each comparison checks all of them. */
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
    this.logger.info({ instanceId, state: workload.state }, 'a workload ended by itself');
    this.outbox.report(this.journal.report({ instanceId, observation, note: '' }, this.clock.now(), 'ended'));
  }

  private async bringBack(instanceId: string): Promise<void> {
    const isStillWanted = this.journal.instance(instanceId)?.desired === 'running';
    const workload = await this.dependencies.runtime.find(instanceId);
    if (!isStillWanted || workload.state !== 'stopped') return;
    const reason = this.dependencies.outages.wasHalted(workload) ? UNPAID : WENT_AWAY;
    await this.startAgain(workload, reason);
    const observation = this.dependencies.observer.observe(await this.found(instanceId));
    const note = `${reason}; the workload was started again`;
    this.logger.info({ instanceId }, note);
    this.outbox.report(this.journal.report({ instanceId, observation, note }, this.clock.now()));
  }

  /** Starts a workload again, unless something else uses its GPUs. Its renter is told why it is not back yet. */
  private async startAgain({ instanceId, gpuUuids }: WorkloadInfo, reason: string): Promise<void> {
    const { gpuAccess, observer, runtime } = this.dependencies;
    try {
      await gpuAccess.acquire(instanceId, gpuUuids, () => {
        observer.startsNow(instanceId);
        return runtime.start(instanceId);
      });
    } catch (error) {
      const message = `${reason}; the workload cannot be started again yet: ${messageOf(error)}; the host tries again every ${COMPARE_EVERY_MS / 1000} seconds`;
      this.outbox.progress({ instanceId, kind: 'interrupted', message, gpusFree: false, pulled: undefined });
      throw error;
    }
  }

  private listen(): void {
    this.dependencies.docker
      .events(() => void this.attempt(() => this.compare()), this.stopping.signal)
      .catch((error: unknown) => this.fails("cannot follow Docker's events", error))
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

/** Tells whether no process of the instance should run. */
function isDown(desired: Desired | undefined): boolean {
  return desired === 'stopped' || desired === 'ended';
}
