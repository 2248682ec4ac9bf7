import type { InstanceStatus } from './instance-state.js';

/** What an instance costs, as snapshotted when it was deployed. */
export interface Rates {
  pricePerHourMicro: number;
  storagePricePerGbHourMicro: number;
  diskGb: number;
}

const HAS_GPUS: readonly InstanceStatus[] = ['creating', 'starting', 'running'];
/** And nothing else. */
const HAS_DISK: readonly InstanceStatus[] = ['stopping', 'stopped'];

/** One hour of an instance's disk, in micro-dollars. */
function diskPerHourMicro(rates: Rates): number {
  return rates.storagePricePerGbHourMicro * rates.diskGb;
}

/** One hour of an instance's GPUs and disk, in micro-dollars. */
export function fullPerHourMicro(rates: Rates): number {
  return rates.pricePerHourMicro + diskPerHourMicro(rates);
}

/**
 * One hour of an organization's burn, in micro-dollars (API rule 17): GPU and disk of what is running, starting or
 * creating, disk of what is stopped. What is stopping counts as stopped.
 */
export function burnPerHourMicro(instances: readonly (Rates & { status: InstanceStatus })[]): number {
  return instances.reduce((sum, instance) => sum + burnOf(instance), 0);
}

function burnOf(instance: Rates & { status: InstanceStatus }): number {
  if (HAS_GPUS.includes(instance.status)) return fullPerHourMicro(instance);
  return HAS_DISK.includes(instance.status) ? diskPerHourMicro(instance) : 0;
}

/**
 * One hour of what is really charged, in micro-dollars: GPUs of what runs or comes up, disks of what is stopped. Unlike the burn,
 * the disks of what runs are not in it.
 */
export function chargedPerHourMicro(instances: readonly (Rates & { status: InstanceStatus })[]): number {
  return instances.reduce((sum, one) => sum + (HAS_GPUS.includes(one.status) ? one.pricePerHourMicro : burnOf(one)), 0);
}
