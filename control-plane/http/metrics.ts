import type { FastifyInstance } from 'fastify';
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import type { Clock } from '../../shared/clock.js';
import { VERSION } from '../../shared/version.js';
import { COMMAND_KINDS } from '../domain/command.js';
import { FAILURE_CODES } from '../domain/command-failure.js';
import type { MetricEvent } from '../domain/metric-event.js';
import type { Overview } from '../services/system/overview.js';
import type { WorkerState } from '../services/system/worker-runs.js';
import { FailingHosts } from './failing-hosts.js';

const SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10];

/** What Prometheus scrapes: counts since the start, and gauges that are set at each scrape. */
export class Metrics {
  private readonly registry = new Registry();
  private readonly failingHosts: FailingHosts;
  private readonly requests = new Histogram({
    name: 'gpurent_http_request_seconds',
    help: 'How long requests took',
    labelNames: ['method', 'route', 'status'],
    buckets: SECONDS,
    registers: [this.registry],
  });
  private readonly commands = this.counter(
    'commands_finished_total',
    'Commands since the start',
    'kind',
    'outcome',
    'code',
  );
  private readonly ledger = this.counter(
    'ledger_entries_total',
    'Payments, refunds, credits and disputes since the start',
    'kind',
  );
  private readonly workers = {
    runs: this.counter('worker_runs_total', 'Runs of background workers since the start', 'worker'),
    failures: this.counter('worker_failures_total', 'Runs of those that failed since the start', 'worker'),
  };
  private readonly gauges = {
    info: this.gauge('control_plane_info', 'The version', 'version'),
    ready: this.gauge('ready', 'Whether the database can be written'),
    backupOverdue: this.gauge('backup_overdue_seconds', 'For how long a scheduled backup has not been made'),
    hostsFailing: this.gauge('hosts_failing', 'Hosts on which commands of several organizations failed lately'),
    hosts: this.gauge('hosts', 'Hosts that are not removed', 'state'),
    gpus: this.gauge('gpus', 'GPUs of those hosts', 'state'),
    instances: this.gauge('instances', 'Instances by status', 'status'),
    workerFailing: this.gauge('worker_failing', 'Whether the last run of a background worker failed', 'worker'),
    workerSeconds: this.gauge('worker_last_run_seconds', 'How long that run took', 'worker'),
    workerTime: this.gauge('worker_last_run_timestamp_seconds', 'When that run began', 'worker'),
    openCommands: this.gauge('commands_open', 'What hosts are still to do', 'kind'),
    oldestCommand: this.gauge('commands_oldest_seconds', 'For how long the oldest of those has waited', 'kind'),
    settlementLag: this.gauge('settlement_lag_seconds', 'For how long the settlement that is due longest has waited'),
    withoutBalance: this.gauge('organizations_without_balance', 'Organizations that have nothing left'),
    quarantined: this.gauge('workloads_quarantined', 'Workloads on hosts that the store cannot explain'),
    ignoredStops: this.gauge('stops_ignored', 'Instances that are charged though their stop has timed out'),
  };

  /** `backupOverdueMs`: for how long a scheduled backup has not been made. `destroyed`: the number of destroyed instances at the start. */
  constructor(
    private readonly backupOverdueMs: () => number,
    clock: Pick<Clock, 'monotonic'>,
    private destroyed: number,
  ) {
    this.failingHosts = new FailingHosts(clock);
    collectDefaultMetrics({ register: this.registry });
    // Prometheus sees no increase in what it sees for the first time.
    for (const kind of COMMAND_KINDS)
      for (const code of FAILURE_CODES) this.commands.inc({ kind, outcome: 'failed', code }, 0);
  }

  get contentType(): string {
    return this.registry.contentType;
  }

  count(counted: MetricEvent): void {
    if (counted.what === 'ledger') return this.ledger.inc({ kind: counted.kind });
    if (counted.what === 'destroyed') return void (this.destroyed += 1);
    const { kind, outcome, failure } = counted;
    this.commands.inc({ kind, outcome, ...(failure ? { code: failure.code } : {}) });
    if (failure?.organizationId) this.failingHosts.note(failure.machineId, failure.organizationId);
  }

  /** Notes every request by its route; what has none is one. */
  observe(app: FastifyInstance): void {
    app.addHook('onResponse', async ({ method, routeOptions }, reply) => {
      const labels = { method, route: routeOptions.url ?? 'none', status: String(reply.statusCode) };
      this.requests.observe(labels, reply.elapsedTime / 1000);
    });
  }

  /** In Prometheus' text format; without an overview: that there can be none now. */
  async render(overview: Overview | undefined, workers: readonly WorkerState[]): Promise<string> {
    const { info, ready, backupOverdue } = this.gauges;
    for (const gauge of Object.values(this.gauges)) gauge.reset();
    info.set({ version: VERSION }, 1);
    ready.set(overview ? 1 : 0);
    backupOverdue.set(this.backupOverdueMs() / 1000);
    this.gauges.hostsFailing.set(this.failingHosts.count);
    this.showWorkers(workers);
    if (overview) this.show(overview);
    return this.registry.metrics();
  }

  private showWorkers(workers: readonly WorkerState[]): void {
    const { workerFailing, workerSeconds, workerTime } = this.gauges;
    for (const counter of Object.values(this.workers)) counter.reset();
    for (const { name: worker, ...state } of workers) {
      this.workers.runs.inc({ worker }, state.runs);
      this.workers.failures.inc({ worker }, state.failures);
      workerFailing.set({ worker }, state.failing ? 1 : 0);
      if (state.last_run_ms !== null) workerSeconds.set({ worker }, state.last_run_ms / 1000);
      if (state.last_run_at !== null) workerTime.set({ worker }, state.last_run_at / 1000);
    }
  }

  private show(overview: Overview): void {
    const { hosts, gpus, instances, openCommands, oldestCommand, settlementLag, withoutBalance } = this.gauges;
    this.gauges.ignoredStops.set(overview.ignoredStops);
    this.gauges.quarantined.set(overview.quarantined);
    for (const [state, count] of Object.entries(overview.hosts)) hosts.set({ state }, count);
    for (const [state, count] of Object.entries(overview.gpus)) gpus.set({ state }, count);
    for (const [status, count] of Object.entries(overview.instances)) instances.set({ status }, count);
    if (this.destroyed > 0) instances.set({ status: 'destroyed' }, this.destroyed);
    for (const { kind, count, oldestMs } of overview.openCommands) {
      openCommands.set({ kind }, count);
      oldestCommand.set({ kind }, oldestMs / 1000);
    }
    settlementLag.set(overview.settlementLagMs / 1000);
    withoutBalance.set(overview.withoutBalance);
  }

  private counter(name: string, help: string, ...labelNames: string[]): Counter {
    return new Counter({ name: `gpurent_${name}`, help, labelNames, registers: [this.registry] });
  }

  private gauge(name: string, help: string, ...labelNames: string[]): Gauge {
    return new Gauge({ name: `gpurent_${name}`, help, labelNames, registers: [this.registry] });
  }
}
