import type { FastifyInstance } from 'fastify';
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import type { CertificateTerm } from '../../../shared/network/certificate-term.js';
import type { Clock } from '../../../shared/clock.js';
import { VERSION } from '../../../shared/version.js';
import { COMMAND_KINDS } from '../../domain/instances/command.js';
import { FAILURE_CODES } from '../../domain/instances/command-failure.js';
import { HOST_REFUSALS } from '../../domain/machines/host-refusal.js';
import type { MetricEvent } from '../../domain/metric-event.js';
import type { Overview } from '../../services/oversight/counts.js';
import type { Signals } from '../../services/oversight/needs.js';
import type { App } from '../../services/parts/parts.js';
import type { WorkerState } from '../../services/system/worker-runs.js';
import { EVENT_STREAM } from '../events/event-streams.js';
import { FailingHosts } from './failing-hosts.js';

const SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10];

/** The metrics for Prometheus: counters since the start, and gauges that are set at each scrape. */
export class Metrics {
  private readonly registry = new Registry();
  private readonly failingHosts: FailingHosts;
  private readonly requests = new Histogram({
    name: 'gpurent_http_request_seconds',
    help: 'Duration of HTTP requests',
    labelNames: ['method', 'route', 'status'],
    buckets: SECONDS,
    registers: [this.registry],
  });
  private readonly requestSeries = new Map<string, Pick<Histogram.Internal<string>, 'observe'>>();
  private readonly commands = this.counter(
    'commands_finished_total',
    'Commands with a final answer since the start',
    'kind',
    'outcome',
    'code',
  );
  private readonly ledger = this.counter(
    'ledger_entries_total',
    'Payments, refunds, credits and disputes since the start',
    'kind',
  );
  private readonly webhooks = this.counter(
    'webhook_attempts_total',
    'Attempts to deliver webhooks since the start',
    'outcome',
  );
  private readonly mails = this.counter('mails_total', 'Mails that were sent, or given up, since the start', 'outcome');
  private readonly refusedHosts = this.counter(
    'host_refusals_total',
    'Hosts, or messages of hosts, that were refused since the start',
    'reason',
  );
  private readonly commits = this.counter('database_commits_total', 'Durable commits since the start');
  private readonly workers = {
    runs: this.counter('worker_runs_total', 'Runs of background workers since the start', 'worker'),
    failures: this.counter('worker_failures_total', 'Failed runs of background workers since the start', 'worker'),
  };
  private readonly gauges = {
    info: this.gauge('control_plane_info', 'The version of the control plane; the value is always 1', 'version'),
    ready: this.gauge('ready', '1 if the database can be written, else 0'),
    diskFree: this.gauge('disk_free_ratio', 'How much of the disk of the database is free, from 0 to 1'),
    diskFull: this.gauge(
      'disk_full',
      '1 if only what ends cost or must be kept is written, because the disk is full, else 0',
    ),
    diskReserve: this.gauge('disk_reserve_bytes', 'What is in reserve on the disk of the database'),
    backupOverdue: this.gauge('backup_overdue_seconds', 'How many seconds the scheduled backup is overdue'),
    copyAge: this.gauge('copy_age_seconds', 'How old the newest copy is that gpurent-copies has made', 'target'),
    certificates: this.gauge(
      'certificate_remaining_seconds',
      'How long a certificate is still valid; negative: it has expired',
      'certificate',
    ),
    hostsFailing: this.gauge(
      'hosts_failing',
      'Hosts on which commands of at least three organizations failed in the last 15 minutes',
    ),
    hosts: this.gauge('hosts', 'Machines that are not removed, by state', 'state'),
    gpus: this.gauge(
      'gpus',
      'GPUs of machines that are not removed, by state; one that is rented is sold, also while it is unhealthy',
      'state',
    ),
    unhealthyGpus: this.gauge('gpus_unhealthy', 'GPUs that are not healthy, rented or not'),
    missingGpus: this.gauge('gpus_missing', 'GPUs that the driver of their host no longer lists, rented or not'),
    disputedGpus: this.gauge('gpus_disputed', 'GPUs that a machine reports and that belong to another machine'),
    clocksOff: this.gauge('hosts_clock_off', 'Connected hosts of which a clock is more than two seconds wrong'),
    clockUntrusted: this.gauge(
      'clock_untrusted',
      '1 if an operator must confirm the clock of the control plane, else 0',
    ),
    instances: this.gauge('instances', 'Instances by status', 'status'),
    workerFailing: this.gauge('worker_failing', '1 if the last run of a background worker failed, else 0', 'worker'),
    workerSeconds: this.gauge('worker_last_run_seconds', 'Duration of the last run of a background worker', 'worker'),
    workerTime: this.gauge(
      'worker_last_run_timestamp_seconds',
      'Start time of the last run of a background worker',
      'worker',
    ),
    openCommands: this.gauge('commands_open', 'Commands that hosts have not finished', 'kind'),
    oldestCommand: this.gauge(
      'commands_oldest_seconds',
      'How long an open command has made no progress, at most',
      'kind',
    ),
    settlementLag: this.gauge('settlement_lag_seconds', 'How long the most overdue settlement has been due'),
    withoutBalance: this.gauge('organizations_without_balance', 'Organizations whose balance is exhausted'),
    quarantined: this.gauge('workloads_quarantined', 'Workloads in quarantine'),
    oldestMail: this.gauge('mail_oldest_seconds', 'How long the oldest mail has waited that is to be sent'),
    auditLag: this.gauge(
      'audit_out_lag_seconds',
      'How long the oldest line has waited that an output of audit lines has not delivered',
      'output',
    ),
    ignoredStops: this.gauge('stops_ignored', 'Instances that are charged although their stop has timed out'),
    refusedAdmins: this.gauge('admins_refused', 'Last admins whom their company has refused as unknown or disabled'),
    eventStreams: this.gauge('event_streams', 'Streams of events that clients receive now'),
    pendingWebhooks: this.gauge('webhooks_pending', 'Deliveries to webhook endpoints that are pending'),
  };

  /** `destroyed` is the number of destroyed instances at the start. */
  constructor(
    private readonly process: {
      /** Returns how long the scheduled backup is overdue. */
      backupOverdueMs: () => number;
      certificates: () => readonly CertificateTerm[];
      /** Returns the age of the newest copy in each place; absent: there is no place. */
      copyAges?: () => readonly { target: string; ageMs: number }[];
      /** The disk of the database. */
      room: Pick<App['room'], 'isFull' | 'reservedBytes' | 'freeShare'>;
    },
    private readonly clock: Pick<Clock, 'monotonic' | 'now'>,
    private destroyed: number,
  ) {
    this.failingHosts = new FailingHosts(clock);
    collectDefaultMetrics({ register: this.registry });
    for (const outcome of ['sent', 'failed']) this.mails.inc({ outcome }, 0);
    for (const outcome of ['delivered', 'retried', 'failed']) this.webhooks.inc({ outcome }, 0);
    for (const reason of HOST_REFUSALS) this.refusedHosts.inc({ reason }, 0);
    // Prometheus counts no increase from the first value of a series, so each series starts at 0.
    for (const kind of COMMAND_KINDS)
      for (const code of FAILURE_CODES) this.commands.inc({ kind, outcome: 'failed', code }, 0);
  }

  get contentType(): string {
    return this.registry.contentType;
  }

  /** Returns what only the process knows of what needs an act of an operator. */
  signals(): Signals {
    const { backupOverdueMs, certificates } = this.process;
    return {
      backupOverdueMs: backupOverdueMs(),
      certificates: certificates(),
      failingHosts: this.failingHosts.ids(),
    };
  }

  count(counted: MetricEvent): void {
    if (counted.what === 'ledger') return this.ledger.inc({ kind: counted.kind });
    if (counted.what === 'webhook') return this.webhooks.inc({ outcome: counted.outcome });
    if (counted.what === 'mail') return this.mails.inc({ outcome: counted.outcome });
    if (counted.what === 'host-refused') return this.refusedHosts.inc({ reason: counted.reason });
    if (counted.what === 'destroyed') return void (this.destroyed += 1);
    const { kind, outcome, failure } = counted;
    this.commands.inc({ kind, outcome, ...(failure ? { code: failure.code } : {}) });
    if (failure?.organizationId) this.failingHosts.note(failure.machineId, failure.organizationId);
  }

  /** Observes the duration of every request by route, but of no stream; all unknown addresses share the route `none`. */
  observe(app: FastifyInstance): void {
    app.addHook('onResponse', ({ method, routeOptions }, reply, done) => {
      if (routeOptions.config.hasStream && reply.getHeader('content-type') === EVENT_STREAM) return done();
      this.series(method, routeOptions.url ?? 'none', reply.statusCode).observe(reply.elapsedTime / 1000);
      done();
    });
  }

  /** Returns the series of one kind of request. It is remembered: to find it by its labels takes longer than to count in it. */
  private series(method: string, route: string, status: number): Pick<Histogram.Internal<string>, 'observe'> {
    const key = `${status} ${method} ${route}`;
    const known = this.requestSeries.get(key) ?? this.requests.labels(method, route, String(status));
    this.requestSeries.set(key, known);
    return known;
  }

  /** Returns all metrics in the Prometheus text format. Without an overview, `gpurent_ready` is 0, because the database is unusable. */
  async render(
    overview: Overview | undefined,
    { workers, commits, openStreams }: { workers: readonly WorkerState[]; commits: number; openStreams: number },
  ): Promise<string> {
    this.commits.reset();
    this.commits.inc(commits);
    const { info, ready, backupOverdue, certificates } = this.gauges;
    for (const gauge of Object.values(this.gauges)) gauge.reset();
    info.set({ version: VERSION }, 1);
    ready.set(overview ? 1 : 0);
    const { room } = this.process;
    const free = room.freeShare();
    if (free === null) this.gauges.diskFree.remove();
    else this.gauges.diskFree.set(free);
    this.gauges.diskFull.set(Number(room.isFull));
    this.gauges.diskReserve.set(room.reservedBytes);
    backupOverdue.set(this.process.backupOverdueMs() / 1000);
    for (const { target, ageMs } of this.process.copyAges?.() ?? []) this.gauges.copyAge.set({ target }, ageMs / 1000);
    for (const { name: certificate, expiresAt } of this.process.certificates())
      certificates.set({ certificate }, (expiresAt - this.clock.now()) / 1000);
    this.gauges.eventStreams.set(openStreams);
    this.gauges.hostsFailing.set(this.failingHosts.ids().length);
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
    this.gauges.unhealthyGpus.set(overview.unhealthyGpus);
    this.gauges.missingGpus.set(overview.missingGpus);
    this.gauges.disputedGpus.set(overview.disputedGpus);
    this.gauges.clocksOff.set(overview.clocksOff);
    this.gauges.clockUntrusted.set(Number(overview.isClockHeld));
    this.gauges.ignoredStops.set(overview.ignoredStops);
    this.gauges.refusedAdmins.set(overview.refusedAdmins);
    this.gauges.quarantined.set(overview.quarantined);
    this.gauges.pendingWebhooks.set(overview.pendingWebhooks);
    this.gauges.oldestMail.set(overview.oldestMailMs / 1000);
    for (const [output, ms] of Object.entries(overview.auditLagMs)) this.gauges.auditLag.set({ output }, ms / 1000);
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
