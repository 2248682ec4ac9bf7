import type { Caller } from '../../domain/caller.js';
import type { Platform } from '../system/platform.js';
import { getOwnInstance } from '../instances/queries.js';

/**
 * Returns the last `tail` lines of the workload's output, oldest first. Empty until the first run. After the end of the workload, or
 * while its host is not connected, they are the last known lines. Refuses with INSTANCE_NOT_FOUND.
 */
export async function readLogs(
  platform: Platform,
  caller: Caller,
  id: string,
  tail: number,
): Promise<readonly string[]> {
  const instance = platform.store.transact((tx) => getOwnInstance(tx, caller, id));
  if (instance.started_at === null) return [];
  const gone = instance.status === 'destroying' || instance.status === 'destroyed';
  const isRunning = instance.status === 'running';
  const run = `${isRunning ? 'up' : 'down'} since ${instance.status_changed_at}`;
  const live = gone ? null : await platform.logs.tail({ id, machineId: instance.machine_id, run, isRunning });
  const kept = JSON.parse(instance.last_lines ?? '[]') as string[];
  return (live?.length ? live : kept).slice(-tail);
}
