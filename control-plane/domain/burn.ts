import type { InstanceStatus } from './instance-state.js';

/** The prices and disk size of an instance, as they were when it was deployed. */
export interface Rates {
  pricePerHourMicro: number;
  storagePricePerGbHourMicro: number;
  diskGb: number;
}

const HAS_GPUS: readonly InstanceStatus[] = ['creating', 'starting', 'running'];
/** In these statuses an instance is charged for its disk only. */
const HAS_DISK: readonly InstanceStatus[] = ['stopping', 'stopped'];

/** Returns the price of one hour of an instance's disk, in micro-dollars. */
export function diskPerHourMicro(rates: Rates): number {
  return rates.storagePricePerGbHourMicro * rates.diskGb;
}

/** Returns the price of one hour of an instance's GPUs and disk, in micro-dollars. */
export function fullPerHourMicro(rates: Rates): number {
  return rates.pricePerHourMicro + diskPerHourMicro(rates);
}

/**
 * Returns one hour of an organization's burn, in micro-dollars (API rule 17). Instances in `creating`, `starting` and `running` count
 * with GPUs and disk; instances in `stopping` and `stopped` count with their disk only.
 */
export function burnPerHourMicro(instances: readonly (Rates & { status: InstanceStatus })[]): number {
  return instances.reduce((sum, instance) => sum + burnOf(instance), 0);
}

function burnOf(instance: Rates & { status: InstanceStatus }): number {
  if (HAS_GPUS.includes(instance.status)) return fullPerHourMicro(instance);
  return HAS_DISK.includes(instance.status) ? diskPerHourMicro(instance) : 0;
}

/**
 * Returns what one hour really charges, in micro-dollars: GPUs of instances in `creating`, `starting` and `running`, disks of those in
 * `stopping` and `stopped`. Unlike the burn, it leaves out the disks of running instances.
 */
export function chargedPerHourMicro(instances: readonly (Rates & { status: InstanceStatus })[]): number {
  return instances.reduce((sum, one) => sum + (HAS_GPUS.includes(one.status) ? one.pricePerHourMicro : burnOf(one)), 0);
}
