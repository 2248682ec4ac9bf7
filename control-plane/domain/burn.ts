import type { InstanceStatus } from './instance-state.js';

/** What an instance costs, as snapshotted when it was deployed. */
export interface Rates {
  pricePerHourMicro: number;
  storagePricePerGbHourMicro: number;
  diskGb: number;
}

/** One hour of an instance's disk, in micro-dollars. */
function diskPerHourMicro(rates: Rates): number {
  return rates.storagePricePerGbHourMicro * rates.diskGb;
}

/** One hour of an instance's GPUs and disk, in micro-dollars. */
export function fullPerHourMicro(rates: Rates): number {
  return rates.pricePerHourMicro + diskPerHourMicro(rates);
}

/**
 * One hour of an organisation's burn, in micro-dollars (deploy rule 1): GPU and disk of what is running, starting or
 * creating, disk of what is stopped. What is stopping counts as stopped.
 */
export function burnPerHourMicro(instances: readonly (Rates & { status: InstanceStatus })[]): number {
  return instances.reduce((sum, instance) => sum + burnOf(instance), 0);
}

function burnOf(instance: Rates & { status: InstanceStatus }): number {
  switch (instance.status) {
    case 'running':
    case 'starting':
    case 'creating':
      return fullPerHourMicro(instance);
    case 'stopped':
    case 'stopping':
      return diskPerHourMicro(instance);
    default:
      return 0;
  }
}
