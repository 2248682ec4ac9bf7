import {
  WorkloadState,
  type Gpu,
  type Heartbeat,
  type InstanceState,
} from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { HEARTBEAT_MS } from '../../../shared/protocol.js';
import type { InstanceStatus } from '../../domain/instances/instance-state.js';
import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { NOTHING } from '../../../shared/observation.js';
import type { ReportedRun } from '../connections/agent-connections.js';
import { gpusOf, type Instance } from '../instances/queries.js';
import { isHealthStored, saveGpus } from '../machines/inventory.js';
import { validateHeartbeat } from '../machines/message-validation.js';
import { reconcileLeftover } from './reconcile.js';
import { recordUsageOfRunning } from '../metering/usage-reports.js';
import type { Platform } from '../system/platform.js';
import { quarantinedOn } from './quarantine.js';
import { MAX_WORDS_CHARS } from './observations.js';

const SAY_AGAIN =
  'this host runs a workload that the control plane does not know; connect again to report all workloads';

/** A heartbeat that arrives this long after a change of status was certainly made after the change. */
const SURELY_LATER_MS = 2 * HEARTBEAT_MS;

const OVER: readonly InstanceStatus[] = ['stopped', 'error', 'destroyed'];

type Reported = Pick<Instance, 'id' | 'status' | 'status_changed_at' | 'sequence' | 'disk_gb'>;

/** Selects the instances of a machine that a JSON array of ids names. */
const reportedInstances = compileOnce(({ machineId, ids }: { machineId: string; ids: string }) =>
  query
    .selectFrom('instances')
    .select(['id', 'status', 'status_changed_at', 'sequence', 'disk_gb'])
    .where('id', 'in', sql<string>`(SELECT value FROM json_each(${ids}))`)
    // The unary plus keeps SQLite from searching every instance that the machine ever had.
    .where(sql`+machine_id`, '=', machineId),
);

/** Returns the workloads that a host reports as running although their instances are `stopped`, `error` or `destroyed`. */
function overButRunning(tx: Tx, instances: readonly Reported[]): InstanceState[] {
  const observation = { ...NOTHING, state: WorkloadState.WORKLOAD_STATE_RUNNING };
  return instances
    .filter(({ status, status_changed_at }) => OVER.includes(status) && status_changed_at < tx.now - SURELY_LATER_MS)
    .map(({ id, sequence, disk_gb }) => ({
      instanceId: id,
      sequence,
      observation,
      gpuUuids: gpusOf(tx, id),
      diskGb: disk_gb,
      origin: '',
    }));
}

/**
 * Applies a heartbeat: health of the host and its GPUs, usage of runs, and stops of workloads that should not run. A heartbeat without
 * runs, and with the GPUs of the one before, reads and writes nothing in the database. Refuses with VALIDATION_FAILED.
 */
export function recordHeartbeat(platform: Platform, machineId: string, heartbeat: Heartbeat): void {
  validateHeartbeat(heartbeat);
  const { connections } = platform;
  connections.recordHealth(machineId, {
    dockerAvailable: heartbeat.dockerAvailable,
    diskFreeGb: heartbeat.diskFreeGb,
    obstacle: heartbeat.obstacle.slice(0, MAX_WORDS_CHARS),
  });
  const { atMs, dockerAheadMs } = heartbeat;
  if (atMs > 0) connections.recordClock(machineId, atMs, dockerAheadMs ?? null);
  const runs = new Map(
    heartbeat.running.map(({ instanceId, runId, runningMs }) => [instanceId, { runId, ms: runningMs }]),
  );
  connections.setRunning(machineId, runs);
  const areGpusKnown = connections.areGpusStored(machineId, heartbeat.gpus);
  if (areGpusKnown && runs.size === 0) return;
  platform.store.transact((tx) => {
    if (runs.size > 0) recordRuns(platform, tx, machineId, runs);
    if (areGpusKnown) return;
    recordGpus(platform, tx, machineId, heartbeat.gpus);
  });
}

/** Remembers GPUs once they are stored as reported. Those that belong to another machine are not, and are compared each time. */
function recordGpus({ connections }: Platform, tx: Tx, machineId: string, gpus: readonly Gpu[]): void {
  if (isHealthStored(tx, machineId, gpus)) return tx.afterCommit(() => connections.setStoredGpus(machineId, gpus));
  connections.setStoredGpus(machineId, null);
  saveGpus(tx, machineId, gpus);
}

function recordRuns(platform: Platform, tx: Tx, machineId: string, runs: ReadonlyMap<string, ReportedRun>): void {
  recordUsageOfRunning(tx, machineId, runs);
  const ids = [...runs.keys()];
  const instances = tx.all(reportedInstances({ machineId, ids: JSON.stringify(ids) }));
  // A host reports all of its workloads, with their GPUs, only when it connects.
  if (instances.length < ids.length && runsUnheardOf(tx, machineId, ids, instances))
    tx.afterCommit(() => platform.connections.close(machineId, SAY_AGAIN));
  reconcileLeftover(tx, machineId, overButRunning(tx, instances));
}

/**
 * Tells whether a host runs a workload that is neither one of the instances of its machine nor in quarantine: it came up after the
 * hello.
 */
function runsUnheardOf(tx: Tx, machineId: string, ids: readonly string[], instances: readonly Reported[]): boolean {
  const known = new Set([...instances.map(({ id }) => id), ...quarantinedOn(tx, machineId)]);
  return ids.some((id) => !known.has(id));
}
