import { isMaintenanceNear } from '../../domain/machines/machine.js';
import { GPU_USES } from '../../domain/machines/gpu-use.js';
import { obstacleOfMachine } from '../catalogue/offer-obstacle.js';
import type { Platform } from '../system/platform.js';
import type { FleetMachine, GpuCounts } from './fleet.js';

/** Hosts name their models, so their number has a bound: all further models are one row. */
export const MOST_MODELS = 50;

/** How many GPUs of a model are what; each counts once. `away`: not sold, on a machine that is not connected, or whatever holds it on a lost one. */
export type GpuSum = GpuCounts & { gpu_model: string | null; total: number; away: number; held_back: number };

/**
 * Counts the GPUs of each model, the most frequent model first. `held_back`: free, on a machine that takes no new instances at `now`.
 * The last row has no model and counts all further models.
 */
export function sumGpus({ connections }: Platform, fleet: readonly FleetMachine[], now: number): GpuSum[] {
  const sums = new Map<string, GpuSum>();
  for (const { machine, models } of fleet) {
    const isAway = !connections.isConnected(machine.id);
    const isClosed = obstacleOfMachine(connections, machine) !== null || isNearMaintenance(machine, now);
    for (const [model, counts] of models) {
      const sum = sums.get(model) ?? emptySum(model);
      sums.set(model, sum);
      for (const use of GPU_USES) {
        sum.total += counts[use];
        const isSold = use === 'sold' && machine.lost_at === null;
        sum[isAway && !isSold ? 'away' : use === 'free' && isClosed ? 'held_back' : use] += counts[use];
      }
    }
  }
  return bounded([...sums.values()].sort((one, other) => other.total - one.total || compare(one, other)));
}

function bounded(sums: GpuSum[]): GpuSum[] {
  const [named, others] = [sums.slice(0, MOST_MODELS), sums.slice(MOST_MODELS)];
  if (others.length === 0) return named;
  const rest = emptySum(null);
  for (const sum of others) for (const name of SUMMED) rest[name] += sum[name];
  return [...named, rest];
}

const SUMMED = [...GPU_USES, 'total', 'away', 'held_back'] as const;

function emptySum(gpu_model: string | null): GpuSum {
  return { gpu_model, total: 0, sold: 0, free: 0, unhealthy: 0, quarantined: 0, away: 0, held_back: 0 };
}

function compare({ gpu_model: one }: GpuSum, { gpu_model: other }: GpuSum): number {
  return (one ?? '') < (other ?? '') ? -1 : 1;
}

function isNearMaintenance(
  { maintenance_starts_at: startsAt, maintenance_ends_at: endsAt }: FleetMachine['machine'],
  now: number,
): boolean {
  return startsAt !== null && endsAt !== null && isMaintenanceNear({ startsAt, endsAt }, now);
}
