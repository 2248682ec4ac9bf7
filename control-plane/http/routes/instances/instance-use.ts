import { Type } from 'typebox';
import type { Use, Field, GpuField, GpuUse } from '../../../../shared/measurement.js';
import {
  presentUses,
  readUse,
  readUseOfMachine,
  WINDOWS,
  type UseOfInstance,
} from '../../../services/measurements/read.js';
import { METRICS_TYPE, instanceMetrics } from '../../metrics/instance-metrics.js';
import { OPERATOR, READ, callerOf, refuseIfEnded } from '../../access/policy.js';
import { choice, integer, iso, list, text, timestamp, uuid } from '../../schema/schemas.js';
import { idOf, type Routes } from '../routes.js';

/** One value for each span; null where it was not measured. */
function series(description: string, type: 'integer' | 'number' = 'integer') {
  const items = Type.Unsafe<number | null>({ type: [type, 'null'] });
  return Type.Array(items, { description: `${description}; null: not measured` });
}

const GpuSeries = Type.Object({
  index: integer('The index of the GPU in the instance, in the order in which `nvidia-smi` lists them'),
  use_percent: series('The share of the time in which the GPU computed'),
  use_max_percent: series('The highest share of ten seconds'),
  memory_used_bytes: series('The most memory of the GPU that was used'),
  memory_total_bytes: series('The memory of the GPU'),
  power_watts: series('The mean power that the GPU took'),
  temperature_celsius: series('The highest temperature of the GPU'),
});

const usage = {
  resolution_seconds: integer('The length of each span: 10, 60 or 3600'),
  at: list(
    timestamp('When a span ended'),
    'When each span ended, the oldest first; every other list has one value for each',
  ),
  gpus: list(GpuSeries, 'The GPUs of the instance; empty: none was measured'),
  cpu_cores: series('The mean number of cores that computed', 'number'),
  cpu_max_cores: series('The highest mean of ten seconds', 'number'),
  cpu_limit_cores: series('The cores of the instance', 'number'),
  memory_used_bytes: series('The most memory that was used, without files that the kernel keeps in memory for later'),
  memory_limit_bytes: series('The memory of the instance'),
  disk_used_bytes: series('What is used of the disk; measured only where the host limits disks to their sizes'),
  disk_limit_bytes: series('The size of the disk'),
  network_in_bytes: series('The bytes that the instance has received in the span'),
  network_out_bytes: series('The bytes that the instance has sent in the span'),
  ssh_sessions: series('The most SSH sessions at once'),
  port_connections: series(
    'The most open connections at once to published ports other than SSH; not measured where a UDP port is published',
  ),
  connections_opened: series('The TCP connections that were opened to the instance, also from within it'),
};

const window = choice(WINDOWS, 'The span of time until now');
const Window = Type.Object({
  window: choice(
    WINDOWS,
    'The span of time until now: `1h` in steps of ten seconds, `24h` in minutes, `90d` in hours',
    { default: '1h' },
  ),
});

const Usage = Type.Object({ window, ...usage }, { title: 'InstanceUsage' });
const MachineUsage = Type.Object({
  window,
  instances: list(
    Type.Object({ instance_id: uuid('The id of the instance'), ...usage }),
    'The instances of the machine that are not destroyed',
  ),
});

/** Routes that show what instances use. */
export const instanceUseRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/instances/:id/usage',
    {
      config: { policy: READ, refusals: ['INSTANCE_NOT_FOUND'] },
      schema: {
        operationId: 'getInstanceUsage',
        summary: 'Get what an instance has used of its GPUs, CPUs, memory, disk and network',
        description:
          'The host measures every ten seconds while the workload is up. For `1h` the host is asked; if it does not answer, `resolution_seconds` is 60. Minutes are kept for a day, hours for 90 days. Charges never depend on it.',
        params: idOf('instance'),
        querystring: Window,
        response: { 200: Usage },
      },
    },
    async (request) => {
      const { window } = request.query;
      const use = await readUse(platform, callerOf(request), request.params.id, window);
      refuseIfEnded(request);
      return { window, ...usageView(use) };
    },
  );

  app.get(
    '/v1/operator/machines/:id/usage',
    {
      config: { policy: OPERATOR, refusals: ['MACHINE_NOT_FOUND'] },
      schema: {
        operationId: 'getMachineUsage',
        summary: 'Get what the instances of a machine have used',
        description: 'Never in steps of ten seconds: `1h` is in minutes.',
        params: idOf('machine'),
        querystring: Window,
        response: { 200: MachineUsage },
      },
    },
    (request) => {
      const { window } = request.query;
      const instances = readUseOfMachine(platform, request.params.id, window);
      return { window, instances: instances.map((each) => ({ instance_id: each.instance_id, ...usageView(each) })) };
    },
  );

  app.get(
    '/v1/metrics/instances',
    {
      config: { policy: READ },
      schema: {
        operationId: 'getInstanceMetrics',
        summary: "Get metrics of the organization's running instances for Prometheus",
        description:
          'Gauges of the newest minute of each running instance, at most the 1,000 newest instances. What was not measured in the last three minutes is left out.',
        produces: ['text/plain'],
        response: { 200: text('The metrics in the text format of Prometheus') },
      },
    },
    (request, reply) => {
      void reply.type(METRICS_TYPE);
      return instanceMetrics(presentUses(platform, callerOf(request)));
    },
  );
};

/** Returns uses as the API shows them: a list for each value. */
function usageView({ resolution_seconds, uses }: UseOfInstance) {
  const of = (name: Field) => uses.map(({ use }) => use[name]);
  const cores = (name: Field) => of(name).map((millis) => (millis === null ? null : millis / 1_000));
  const gpus = Math.max(0, ...uses.map(({ use }) => use.gpus.length));
  return {
    resolution_seconds,
    at: uses.map(({ at }) => iso(at)),
    gpus: Array.from({ length: gpus }, (_, index) =>
      gpuView(
        index,
        uses.map(({ use }) => use),
      ),
    ),
    cpu_cores: cores('cpuMillis'),
    cpu_max_cores: cores('cpuMaxMillis'),
    cpu_limit_cores: cores('cpuLimitMillis'),
    memory_used_bytes: of('memoryUsedBytes'),
    memory_limit_bytes: of('memoryLimitBytes'),
    disk_used_bytes: of('diskUsedBytes'),
    disk_limit_bytes: of('diskLimitBytes'),
    network_in_bytes: of('networkInBytes'),
    network_out_bytes: of('networkOutBytes'),
    ssh_sessions: of('sshSessions'),
    port_connections: of('portConnections'),
    connections_opened: of('connectionsOpened'),
  };
}

function gpuView(index: number, uses: readonly Use[]) {
  const of = (name: GpuField) => uses.map(({ gpus }): GpuUse[GpuField] => gpus[index]?.[name] ?? null);
  return {
    index,
    use_percent: of('usePercent'),
    use_max_percent: of('useMaxPercent'),
    memory_used_bytes: of('memoryUsedBytes'),
    memory_total_bytes: of('memoryTotalBytes'),
    power_watts: of('powerWatts'),
    temperature_celsius: of('temperatureCelsius'),
  };
}
