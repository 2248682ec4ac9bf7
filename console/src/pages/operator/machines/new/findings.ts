import { limitsNoDisks } from '../../machine-state.js';
import type { Machine } from '../../models.js';

/** Returns what keeps renters away from a connected machine, as its agent has found it. */
export function findingsOf(machine: Machine): string[] {
  const { gpus, obstacle } = machine;
  const sick = gpus.filter(({ healthy }) => !healthy);
  return [
    ...(obstacle === null ? [] : [obstacle]),
    ...(gpus.length === 0 ? ['It reports no GPU.'] : []),
    ...sick.map(({ model, uuid, reason }) => `${model} ${uuid} is unhealthy: ${reason ?? 'no reason is known'}`),
    ...(limitsNoDisks(machine) ? ['It does not limit the disks of renters: one could fill the disk of all.'] : []),
  ];
}
