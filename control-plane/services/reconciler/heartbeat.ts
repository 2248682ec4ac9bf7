import {
  WorkloadState,
  type Gpu,
  type Heartbeat,
  type InstanceState,
} from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { HEARTBEAT_MS } from '../../../shared/protocol.js';
import { listOf, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { NOTHING } from '../../../shared/observation.js';
import { MINUTE_MS } from '../../../shared/time.js';
import { gpusOf } from '../instances/queries.js';
import { saveGpus } from '../machines/inventory.js';
import { validateHeartbeat } from '../machines/message-validation.js';
import { reconcileLeftover } from './reconcile.js';
import { findGpus } from '../machines/machines.js';
import { recordUsageOfRunning } from '../metering/usage-reports.js';
import type { Platform } from '../system/platform.js';
import { runsUnheardOf } from './quarantine.js';
import { MAX_WORDS_CHARS } from './observations.js';

const SAY_AGAIN =
  'this host runs a workload that the control plane does not know; connect again to report all workloads';

const LAST_SEEN_GRAIN_MS = MINUTE_MS;

/** A heartbeat that arrives this long after a change of status was certainly made after the change. */
const SURELY_LATER_MS = 2 * HEARTBEAT_MS;

/** Returns the workloads that a host reports as running although their instances are `stopped`, `error` or `destroyed`. */
function overButRunning(tx: Tx, machineId: string, { running }: Heartbeat): InstanceState[] {
  const ids = running.map(({ instanceId }) => instanceId);
  const over = tx.all(
    query
      .selectFrom('instances')
      .select(['id', 'sequence', 'disk_gb as diskGb'])
      .where('id', 'in', listOf(ids))
      // The unary plus keeps SQLite from searching every instance that the machine ever had.
      .where(sql`+machine_id`, '=', machineId)
      .where('status', 'in', ['stopped', 'error', 'destroyed'])
      .where('status_changed_at', '<', tx.now - SURELY_LATER_MS),
  );
  const observation = { ...NOTHING, state: WorkloadState.WORKLOAD_STATE_RUNNING };
  return over.map(({ id, sequence, diskGb }) => ({
    instanceId: id,
    sequence,
    observation,
    gpuUuids: gpusOf(tx, id),
    diskGb,
    origin: '',
  }));
}

/**
 * Applies a heartbeat: health of the host and its GPUs, usage of runs, and stops of workloads that should not run. To save writes, GPUs
 * are written only after a change, and `last_seen_at` once a minute. Refuses with VALIDATION_FAILED.
 */
export function recordHeartbeat(platform: Platform, machineId: string, heartbeat: Heartbeat): void {
  validateHeartbeat(heartbeat);
  platform.connections.setDockerAvailable(machineId, heartbeat.dockerAvailable);
  platform.connections.setDiskFree(machineId, heartbeat.diskFreeGb);
  platform.connections.setObstacle(machineId, heartbeat.obstacle.slice(0, MAX_WORDS_CHARS));
  const runs = new Map(
    heartbeat.running.map(({ instanceId, runId, runningMs }) => [instanceId, { runId, ms: runningMs }]),
  );
  platform.connections.setRunning(machineId, runs);
  platform.store.transact((tx) => {
    recordUsageOfRunning(tx, machineId, runs);
    const ids = [...runs.keys()];
    // A host reports all of its workloads, with their GPUs, only when it connects.
    if (runsUnheardOf(tx, machineId, ids)) tx.afterCommit(() => platform.connections.close(machineId, SAY_AGAIN));
    reconcileLeftover(tx, machineId, overButRunning(tx, machineId, heartbeat));
    const present = findGpus(tx, machineId);
    const unchanged = (gpu: Gpu) => present.some((row) => row.uuid === gpu.uuid && (row.healthy === 1) === gpu.healthy);
    if (present.length !== heartbeat.gpus.length || !heartbeat.gpus.every(unchanged)) {
      saveGpus(tx, machineId, heartbeat.gpus);
    }
    tx.run(
      query
        .updateTable('machines')
        .set({ last_seen_at: tx.now })
        .where('id', '=', machineId)
        .where('last_seen_at', '<', tx.now - LAST_SEEN_GRAIN_MS),
    );
  });
}
