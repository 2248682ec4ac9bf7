import type { Caller } from '../../domain/caller.js';
import type { Platform } from '../system/platform.js';
import { getOwnInstance } from '../instances/queries.js';

/**
 * The last `tail` lines of the workload's output, oldest first: empty until it has run for the first time, and the last ones
 * known after it has ended or while its host is away. Refuses with INSTANCE_NOT_FOUND.
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
