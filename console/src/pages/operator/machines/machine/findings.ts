import { limitsNoDisks } from '../../machine-state.js';
import type { Machine } from '../../models.js';

/** Returns what keeps renters away from a machine, or should be mended, as its host has reported it. */
export function findingsOf(machine: Machine): string[] {
  const { gpus, obstacle, agent_version, upgrade_to } = machine;
  const disputed = gpus.filter(({ disputed_with }) => disputed_with);
  const missing = gpus.filter((gpu) => gpu.missing && !gpu.disputed_with);
  const sick = gpus.filter((gpu) => !gpu.healthy && !gpu.missing && !gpu.disputed_with);
  return [
    ...(obstacle === null ? [] : [`It accepts no new instances: ${obstacle}`]),
    ...(gpus.length === 0 ? ['It reports no GPU.'] : []),
    ...missing.map(
      ({ model, uuid }) =>
        `${model} ${uuid} is missing: the driver of the host no longer lists it. Check its slot and its power.`,
    ),
    ...sick.map(({ model, uuid, reason }) => `${model} ${uuid} is unhealthy: ${reason ?? 'no reason is known'}`),
    ...disputed.map(({ model, uuid, reason }) => `${model} ${uuid} cannot be rented here: ${reason}`),
    ...(limitsNoDisks(machine) ? ['It does not limit the disks of renters: one could fill the disk of all.'] : []),
    ...(upgrade_to === null ? [] : [`Its agent is ${agent_version}: upgrade it to ${upgrade_to}.`]),
  ];
}
