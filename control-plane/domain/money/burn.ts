import type { InstanceStatus } from '../instances/instance-state.js';

/** The prices and disk size of an instance, as they were when it was deployed. */
export interface Rates {
  pricePerHourMicro: number;
  storagePricePerGbHourMicro: number;
  diskGb: number;
}

const HAS_GPUS: readonly InstanceStatus[] = ['creating', 'starting', 'running'];
/** In these statuses an instance is charged for its disk only. */
const HAS_DISK: readonly InstanceStatus[] = ['stopping', 'stopped'];

/** The API keys for whose caps an instance counts; null: none. */
export interface CountedKeys {
  /** It has deployed the instance: its disk counts. */
  apiKeyId: string | null;
  /** It has caused the last run, by a deploy or a start: its GPUs count. */
  runKeyId: string | null;
}

/** Returns instances with the prices that count for the caps of an API key; null: of the organization, for which all do. */
export function countedFor<One extends Rates & CountedKeys>(keyId: string | null, instances: readonly One[]): One[] {
  if (keyId === null) return [...instances];
  return instances.map((one) => ({
    ...one,
    pricePerHourMicro: one.runKeyId === keyId ? one.pricePerHourMicro : 0,
    storagePricePerGbHourMicro: one.apiKeyId === keyId ? one.storagePricePerGbHourMicro : 0,
  }));
}

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
