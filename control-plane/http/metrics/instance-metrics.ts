import type { Field, GpuField, Use } from '../../../shared/measurement.js';

export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

interface Gauge<Name> {
  name: string;
  help: string;
  field: Name;
  /** What a value is divided by. */
  divisor?: number;
}

const GAUGES: readonly Gauge<Field>[] = [
  { name: 'cpu_cores', help: 'Cores that compute', field: 'cpuMillis', divisor: 1_000 },
  { name: 'cpu_limit_cores', help: 'Cores of the instance', field: 'cpuLimitMillis', divisor: 1_000 },
  { name: 'memory_used_bytes', help: 'Memory in use', field: 'memoryUsedBytes' },
  { name: 'memory_limit_bytes', help: 'Memory of the instance', field: 'memoryLimitBytes' },
  { name: 'disk_used_bytes', help: 'Disk space in use', field: 'diskUsedBytes' },
  { name: 'disk_limit_bytes', help: 'Size of the disk', field: 'diskLimitBytes' },
  { name: 'network_in_bytes_last_minute', help: 'Bytes received in the newest minute', field: 'networkInBytes' },
  { name: 'network_out_bytes_last_minute', help: 'Bytes sent in the newest minute', field: 'networkOutBytes' },
  { name: 'ssh_sessions', help: 'Most SSH sessions at once', field: 'sshSessions' },
  { name: 'port_connections', help: 'Most connections at once to published ports', field: 'portConnections' },
  { name: 'connections_opened_last_minute', help: 'TCP connections opened to it', field: 'connectionsOpened' },
];

const GPU_GAUGES: readonly Gauge<GpuField>[] = [
  { name: 'gpu_use_ratio', help: 'Share of the time in which the GPU computes', field: 'usePercent', divisor: 100 },
  { name: 'gpu_memory_used_bytes', help: 'Memory of the GPU in use', field: 'memoryUsedBytes' },
  { name: 'gpu_memory_total_bytes', help: 'Memory of the GPU', field: 'memoryTotalBytes' },
  { name: 'gpu_power_watts', help: 'Power that the GPU takes', field: 'powerWatts' },
  { name: 'gpu_temperature_celsius', help: 'Temperature of the GPU', field: 'temperatureCelsius' },
];

interface Measured {
  id: string;
  label: string | null;
  use: Use;
}

/** Returns the present use of instances in the text format of Prometheus. What was not measured has no line. */
export function instanceMetrics(instances: readonly Measured[]): string {
  const named = instances.map(({ id, label, use }) => ({
    use,
    labels: `instance_id="${id}",label="${escaped(label ?? '')}"`,
  }));
  const lines = [
    ...GAUGES.flatMap((gauge) =>
      linesOf(
        gauge,
        named.map(({ labels, use }) => ({ labels, value: use[gauge.field] })),
      ),
    ),
    ...GPU_GAUGES.flatMap((gauge) =>
      linesOf(
        gauge,
        named.flatMap(({ labels, use }) =>
          use.gpus.map((gpu, index) => ({ labels: `${labels},gpu="${index}"`, value: gpu[gauge.field] })),
        ),
      ),
    ),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

function linesOf(
  { name, help, divisor = 1 }: Gauge<unknown>,
  values: readonly { labels: string; value: number | null }[],
): string[] {
  const full = `gpurent_instance_${name}`;
  const measured = values.flatMap(({ labels, value }) =>
    value === null ? [] : [`${full}{${labels}} ${value / divisor}`],
  );
  return [`# HELP ${full} ${help}`, `# TYPE ${full} gauge`, ...measured];
}

/** A renter chooses the label: it must not end the text around it. */
function escaped(label: string): string {
  return label.replace(/\\/g, '\\\\').replace(/\n/g, '\\n').replace(/"/g, '\\"');
}
