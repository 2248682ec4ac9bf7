import type { Gpu, Machine } from './models.js';

/** What a GPU is to an operator: each GPU is one of these, the first that holds. */
type GpuState = 'away' | 'unhealthy' | 'quarantine' | 'sold' | 'held back' | 'free';

/** Returns what a GPU is: `held back`: nobody has rented it, and its machine takes no instances at present. */
export function gpuState(machine: Machine, gpu: Gpu, now: number): GpuState {
  if (!machine.connected) return isSold(machine, gpu) ? 'sold' : 'away';
  if (!gpu.healthy) return 'unhealthy';
  if (gpu.quarantine_id !== null) return 'quarantine';
  if (gpu.instance_id !== null) return 'sold';
  return whyClosed(machine, now) === undefined ? 'free' : 'held back';
}

/** Tells whether a GPU is rented, also while its machine is away or the GPU is unhealthy. What ran on a lost machine has ended. */
export function isSold({ lost }: Machine, { instance_id }: Gpu): boolean {
  return !lost && instance_id !== null;
}

/** Returns why a connected machine takes no new instances; undefined: it takes them. */
function whyClosed(machine: Machine, now: number): string | undefined {
  if (machine.cordoned) return 'cordoned';
  if (isInMaintenance(machine, now)) return 'in maintenance';
  if (machine.obstacle !== null) return machine.obstacle;
  if (limitsNoDisks(machine)) return 'it does not limit the disks of renters';
  return undefined;
}

/** Tells whether a machine is not offered because one renter could fill the disk of all. */
export function limitsNoDisks({ disk_quota, disk_quota_waived }: Machine): boolean {
  return disk_quota === 'none' && !disk_quota_waived;
}

function isInMaintenance({ maintenance }: Machine, now: number): boolean {
  return maintenance !== null && Date.parse(maintenance.starts_at) <= now && now < Date.parse(maintenance.ends_at);
}

/** Returns the state of a machine: a shape and its words. */
export function machineState(machine: Machine, now: number) {
  if (machine.lost) return { shape: 'dash', words: 'lost' } as const;
  if (!machine.connected) return { shape: 'square', words: 'away' } as const;
  const closed = whyClosed(machine, now);
  if (closed !== undefined) return { shape: 'ring', words: `connected, ${closed}` } as const;
  const sick = machine.gpus.filter(({ healthy }) => !healthy).length;
  if (sick > 0)
    return { shape: 'square', words: `connected, ${sick} ${sick === 1 ? 'GPU' : 'GPUs'} unhealthy` } as const;
  return { shape: 'dot', words: 'connected' } as const;
}

/** Returns the GPUs of a machine in words: `8 × H100, 1 × L4`. */
export function gpuWords({ gpus }: Pick<Machine, 'gpus'>): string {
  const counts = new Map<string, number>();
  for (const { model } of gpus) counts.set(model, (counts.get(model) ?? 0) + 1);
  return [...counts].map(([model, count]) => `${count} × ${model}`).join(', ') || 'none';
}
