import type { Gpu, Machine } from './models.js';

/** What a GPU is to an operator: each GPU is one of these, the first that holds. */
type GpuState = 'away' | 'missing' | 'unhealthy' | 'quarantine' | 'sold' | 'held back' | 'free';

/** Returns what a GPU is: `held back`: nobody has rented it, and its machine takes no instances at present. */
export function gpuState(machine: Machine, gpu: Gpu, now: number): GpuState {
  if (!machine.connected) return isSold(machine, gpu) ? 'sold' : 'away';
  if (gpu.missing) return 'missing';
  if (!gpu.healthy) return 'unhealthy';
  if (gpu.quarantine_id !== null) return 'quarantine';
  if (gpu.instance_id !== null) return 'sold';
  return whyClosed(machine, now).length === 0 ? 'free' : 'held back';
}

/** Tells whether a GPU is rented, also while its machine is away or the GPU is unhealthy. What ran on a lost machine has ended. */
export function isSold({ lost }: Machine, { instance_id }: Gpu): boolean {
  return !lost && instance_id !== null;
}

/** Tells whether a machine takes new instances, where it has free GPUs. */
export function takesInstances(machine: Machine, now: number): boolean {
  return machine.connected && !machine.lost && whyClosed(machine, now).length === 0;
}

/** Returns everything for which a machine takes no new instances, also once it is connected. */
function whyClosed(machine: Machine, now: number): string[] {
  return [
    ...(machine.cordoned ? ['cordoned'] : []),
    ...maintenanceWords(machine, now),
    ...(machine.obstacle === null ? [] : [machine.obstacle]),
    ...(limitsNoDisks(machine) ? ['it does not limit the disks of renters'] : []),
  ];
}

/** Tells whether a machine is not offered because one renter could fill the disk of all. */
export function limitsNoDisks({ disk_quota, disk_quota_waived }: Machine): boolean {
  return disk_quota === 'none' && !disk_quota_waived;
}

/** Nothing starts on a machine from an hour before its maintenance on. */
const LEAD_MS = 3_600_000;

function maintenanceWords({ maintenance }: Machine, now: number): string[] {
  if (maintenance === null || now >= Date.parse(maintenance.ends_at)) return [];
  const startsIn = Date.parse(maintenance.starts_at) - now;
  if (startsIn <= 0) return ['in maintenance'];
  return startsIn <= LEAD_MS ? ['in maintenance within the hour'] : [];
}

/** Returns the state of a machine: a shape, and words for all that holds. Of a lost one nothing else matters. */
export function machineState(machine: Machine, now: number) {
  if (machine.lost) return { shape: 'dash', words: 'lost' } as const;
  const closed = whyClosed(machine, now);
  const missing = machine.gpus.filter((gpu) => gpu.missing).length;
  const sick = machine.gpus.filter((gpu) => !gpu.healthy && !gpu.missing).length;
  const words = [
    machine.connected ? 'connected' : 'away',
    ...closed,
    ...countWords(missing, 'missing'),
    ...countWords(sick, 'unhealthy'),
  ].join(', ');
  if (!machine.connected || missing > 0 || sick > 0) return { shape: 'square', words } as const;
  return { shape: closed.length > 0 ? 'ring' : 'dot', words } as const;
}

function countWords(gpus: number, are: string): string[] {
  return gpus === 0 ? [] : [`${gpus} ${gpus === 1 ? 'GPU' : 'GPUs'} ${are}`];
}

/** Returns the GPUs of a machine in words: `8 × H100, 1 × L4`. */
export function gpuWords({ gpus }: Pick<Machine, 'gpus'>): string {
  const counts = new Map<string, number>();
  for (const { model } of gpus) counts.set(model, (counts.get(model) ?? 0) + 1);
  return [...counts].map(([model, count]) => `${count} × ${model}`).join(', ') || 'none';
}
