import { withTimeout, type Clock, type Timer } from '../../shared/clock.js';
import { messageOf } from '../../shared/coded-error.js';
import type { InstanceMeasurements, MeasurementQuery } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { toMeasurement } from '../../shared/measurement.js';
import type { PacedLog } from '../../shared/paced-log.js';
import { HOUR_MS } from '../../shared/time.js';
import { troubleOf } from '../domain/failure.js';
import type { GpuDriver, GpuReading } from '../host/gpus/driver.js';
import type { Outbox } from '../link/outbox.js';
import type { LocatedWorkload } from '../runtime/workload.js';
import type { Accounts } from './accounts.js';
import type { DiskUse } from './disk-use.js';
import { History, type Minute } from './history.js';
import { Probe } from './probe.js';

const EVERY_MS = 10_000;
const ROUNDS_A_MINUTE = 6;
/** A look that takes longer counts as not measured in this round. */
const LOOK_MS = 8_000;
/** Workloads beyond these are not measured: each takes up to 50 kB of memory for each of its GPUs. */
const MOST_WORKLOADS = 128;
/** About 60 kB. What is left goes with the next round. */
const MOST_MINUTES_A_MESSAGE = 500;

/** How the host looks at workloads. */
export interface Instruments {
  /** Returns where the host can find out what a workload uses; undefined: it does not run. */
  locate(instanceId: string): Promise<LocatedWorkload | undefined>;
  /** Returns what the kernel has counted; undefined: the process is not the workload's any more. */
  accounts(located: LocatedWorkload): Accounts | undefined;
  diskUse(located: LocatedWorkload): Promise<DiskUse | null>;
}

/**
 * Measures every ten seconds what running workloads use, keeps that for an hour, and sends a message of whole minutes once a minute.
 * While no workload should run, it looks at nothing and sends nothing.
 */
export class Measurements {
  private timer: Timer | undefined;
  private isStopped = false;
  private isBusy = false;
  private isWanted = false;
  private rounds = 0;
  private readonly probes = new Map<string, Probe>();
  private readonly histories = new Map<string, History>();

  constructor(
    /** Returns the instances whose workloads should run. */
    private readonly running: () => string[],
    /** Null: this host measures nothing. */
    private readonly instruments: Instruments | null,
    private readonly gpus: Pick<GpuDriver, 'use'>,
    private readonly outbox: Pick<Outbox, 'measurements' | 'measurementAnswer'>,
    private readonly clock: Clock,
    private readonly paced: PacedLog,
  ) {}

  start(): void {
    if (this.isStopped || !this.instruments) return;
    this.timer = this.clock.schedule(EVERY_MS, () => {
      this.start();
      void this.round();
    });
  }

  stop(): void {
    this.isStopped = true;
    this.timer?.cancel();
  }

  /** Whether this host can answer queries. */
  get canAnswer(): boolean {
    return this.instruments !== null;
  }

  /** `takes`: whether the control plane takes measurements. */
  connected(takes: boolean): void {
    this.isWanted = takes;
    for (const history of this.histories.values()) history.sendAgain(this.clock.monotonic());
  }

  disconnected(): void {
    this.isWanted = false;
  }

  /** Sends the points of one instance. */
  answer({ queryId, instanceId }: MeasurementQuery): void {
    const now = this.clock.monotonic();
    const points = this.histories.get(instanceId)?.points(now) ?? [];
    const measured = points.map(({ at, use }) => toMeasurement(use, Math.round(now - at)));
    this.outbox.measurementAnswer({ queryId, points: measured });
  }

  /** Measures once; does nothing while the round before is not over. */
  private async round(): Promise<void> {
    if (this.isBusy) return;
    this.isBusy = true;
    try {
      const ids = this.running().slice(0, MOST_WORKLOADS);
      for (const id of this.probes.keys()) if (!ids.includes(id)) this.probes.delete(id);
      const isMinute = ++this.rounds % ROUNDS_A_MINUTE === 0;
      if (ids.length > 0) {
        const gpus = await this.soon(this.gpus.use(), new Map<string, GpuReading>());
        await Promise.all(ids.map((id) => this.measure(id, gpus, isMinute)));
      }
      if (isMinute) for (const history of this.histories.values()) history.endMinute();
      this.forget();
      this.send();
    } catch (error) {
      const message = `workloads cannot be measured: ${messageOf(error)}`;
      this.paced.write('warn', message, {}, troubleOf(error, message));
    } finally {
      this.isBusy = false;
    }
  }

  private async measure(id: string, gpus: ReadonlyMap<string, GpuReading>, isMinute: boolean): Promise<void> {
    const known = this.probes.get(id);
    const accounts = known && this.instruments?.accounts(known.located);
    const probe = accounts ? known : await this.find(id);
    if (!probe || this.isStopped) return;
    if (isMinute || probe !== known) this.lookAtDisk(probe);
    const at = this.clock.monotonic();
    const use = probe.measure(at, accounts ?? this.instruments?.accounts(probe.located), gpus);
    this.historyOf(id, use.gpus.length).add({ at, use });
  }

  /** Finds the present run of a workload. */
  private async find(id: string): Promise<Probe | undefined> {
    this.probes.delete(id);
    const located = this.instruments && (await this.soon(this.instruments.locate(id), undefined));
    if (!located) return undefined;
    const probe = new Probe(located);
    this.probes.set(id, probe);
    return probe;
  }

  /** Not awaited: a file system that hangs delays no other measurement. */
  private lookAtDisk(probe: Probe): void {
    if (!this.instruments) return;
    void this.soon(this.instruments.diskUse(probe.located), null).then((disk) => (probe.disk = disk));
  }

  private historyOf(id: string, gpus: number): History {
    const known = this.histories.get(id);
    if (known?.gpus === gpus) return known;
    const history = new History(gpus);
    this.histories.set(id, history);
    return history;
  }

  /** Forgets what was measured more than an hour ago, and the oldest of more workloads than are measured at once. */
  private forget(): void {
    const now = this.clock.monotonic();
    const oldestFirst = [...this.histories].sort(([, one], [, other]) => one.newestAt - other.newestAt);
    const surplus = oldestFirst.length - MOST_WORKLOADS;
    for (const [index, [id, { newestAt }]] of oldestFirst.entries())
      if (index < surplus || now - newestAt > HOUR_MS) this.histories.delete(id);
  }

  private send(): void {
    if (!this.isWanted) return;
    const now = this.clock.monotonic();
    const chosen: Minute[] = [];
    const instances: InstanceMeasurements[] = [];
    for (const [instanceId, history] of this.histories) {
      const minutes = history.unsent(MOST_MINUTES_A_MESSAGE - chosen.length);
      if (minutes.length === 0) continue;
      chosen.push(...minutes);
      instances.push({
        instanceId,
        minutes: minutes.map(({ endedAt, use }) => toMeasurement(use, Math.round(now - endedAt))),
      });
    }
    if (instances.length > 0 && this.outbox.measurements({ instances }))
      for (const minute of chosen) minute.isSent = true;
  }

  /** Resolves to the result of a look, or to `otherwise` if it fails or takes too long. */
  private soon<T>(look: Promise<T>, otherwise: T): Promise<T> {
    return withTimeout(this.clock, LOOK_MS, look, () => otherwise).catch(() => otherwise);
  }
}
