import { Gauge, Registry, collectDefaultMetrics } from 'prom-client';
import { systemClock, type Clock } from '../../shared/clock.js';
import type { Snapshot } from './snapshot.js';

/** The metrics for Prometheus: gauges that are set from a snapshot at each scrape. */
export class Metrics {
  private readonly registry = new Registry();
  private readonly gauges = {
    info: this.gauge('agent_info', 'The agent’s version', 'version'),
    connected: this.gauge('agent_connected', 'Whether the control plane is connected'),
    docker: this.gauge('agent_docker_available', 'Whether Docker answers'),
    obstacle: this.gauge('agent_obstacle', 'Whether the host takes nothing new'),
    diskFree: this.gauge('agent_disk_free_gigabytes', 'Disk space that is free for renters'),
    gpuHealthy: this.gauge('agent_gpu_healthy', 'Whether a GPU is healthy', 'uuid', 'model'),
    gpuUsed: this.gauge('agent_gpu_rented', 'Whether a running workload has the GPU', 'uuid', 'model'),
    unanswered: this.gauge('agent_docker_unanswered_seconds', 'Age of the oldest Docker call without an answer'),
    certificates: this.gauge(
      'agent_certificate_remaining_seconds',
      'How long a certificate is still valid; negative: it has expired',
      'certificate',
    ),
    workloads: this.gauge('agent_workloads', 'Workloads by state', 'state'),
    commands: this.gauge('agent_commands_finished', 'Commands since the start', 'kind', 'outcome'),
  };

  constructor(private readonly clock: Pick<Clock, 'now'> = systemClock) {
    collectDefaultMetrics({ register: this.registry });
  }

  get contentType(): string {
    return this.registry.contentType;
  }

  /** Returns the metrics in Prometheus' text format. */
  async render(snapshot: Snapshot): Promise<string> {
    const { info, connected, docker, obstacle, diskFree, unanswered, gpuHealthy, gpuUsed, workloads, commands } =
      this.gauges;
    for (const gauge of Object.values(this.gauges)) gauge.reset();
    info.set({ version: snapshot.version }, 1);
    connected.set(Number(snapshot.connected));
    docker.set(Number(snapshot.dockerAvailable));
    obstacle.set(Number(snapshot.obstacle !== ''));
    // Without Docker the free space is unknown, not zero.
    if (snapshot.dockerAvailable) diskFree.set(snapshot.diskFreeGb);
    else diskFree.remove();
    unanswered.set(Math.max(0, ...snapshot.unanswered.map(({ ms }) => ms)) / 1_000);
    for (const { name, expiresAt } of snapshot.certificates)
      this.gauges.certificates.set({ certificate: name }, (expiresAt - this.clock.now()) / 1_000);
    const used = new Set(snapshot.workloads.flatMap(({ state, gpuUuids }) => (state === 'running' ? gpuUuids : [])));
    for (const { uuid, model, healthy } of snapshot.gpus) {
      gpuHealthy.set({ uuid, model }, Number(healthy));
      gpuUsed.set({ uuid, model }, Number(used.has(uuid)));
    }
    for (const { state } of snapshot.workloads) workloads.inc({ state });
    for (const { kind, outcome, count } of snapshot.commands) commands.set({ kind, outcome }, count);
    return this.registry.metrics();
  }

  private gauge(name: string, help: string, ...labelNames: string[]): Gauge {
    return new Gauge({ name: `gpurent_${name}`, help, labelNames, registers: [this.registry] });
  }
}
