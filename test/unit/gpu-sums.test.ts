import { expect, it } from 'vitest';
import { HOUR_MS } from '../../shared/time.js';
import type { FleetMachine } from '../../control-plane/services/oversight/fleet.js';
import { sumGpus } from '../../control-plane/services/oversight/gpu-sums.js';
import type { Platform } from '../../control-plane/services/system/platform.js';

const NOW = 1_000;
const connections = { isConnected: (id: string) => id !== 'away', troubleOf: () => null };
const platform = { connections } as unknown as Platform;

function machine(fields: Partial<FleetMachine['machine']>, model: string, free: number): FleetMachine {
  const times = { removed_at: null, lost_at: null, cordoned_at: null, quota_waived_at: null };
  const window = { maintenance_starts_at: null, maintenance_ends_at: null };
  const row = { id: 'm', disk_quota: 'enforced', ...times, ...window, ...fields } as FleetMachine['machine'];
  return {
    machine: row,
    models: new Map([[model, { sold: 1, quarantined: 0, unhealthy: 0, free }]]),
    unhealthy: 0,
    missing: 0,
    disputed: 0,
  };
}

it('counts free GPUs as held back while their machine takes nothing new, and those that nobody rents of an absent one as away', () => {
  const fleet = [
    machine({}, 'H100', 2),
    machine({ id: 'away' }, 'H100', 2),
    machine({ cordoned_at: 1 }, 'H100', 4),
    machine({ maintenance_starts_at: 0, maintenance_ends_at: NOW }, 'H100', 8),
    machine({ maintenance_starts_at: 0, maintenance_ends_at: NOW + 1 }, 'H100', 16),
    // In the hour before, too, nothing can be deployed.
    machine({ maintenance_starts_at: NOW + HOUR_MS, maintenance_ends_at: NOW + 2 * HOUR_MS }, 'H100', 32),
    machine({ maintenance_starts_at: NOW + HOUR_MS + 1, maintenance_ends_at: NOW + 2 * HOUR_MS }, 'H100', 64),
  ];
  const sum = { sold: 7, free: 74, held_back: 52, unhealthy: 0, quarantined: 0, away: 2 };
  expect(sumGpus(platform, fleet, NOW)).toEqual([{ gpu_model: 'H100', total: 135, ...sum }]);
});

it('names fifty models, the most frequent first, and adds up the others', () => {
  const fleet = Array.from({ length: 60 }, (_, index) => machine({}, `model ${index}`, index));
  const sums = sumGpus(platform, fleet, NOW);
  expect(sums).toHaveLength(51);
  expect(sums[0]?.gpu_model).toBe('model 59');
  expect(sums.at(-1)).toMatchObject({ gpu_model: null, sold: 10, free: 45, total: 55 });
});
