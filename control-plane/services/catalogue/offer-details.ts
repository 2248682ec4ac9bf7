import { sliceResources } from '../../domain/machines/machine.js';
import type { Row } from '../../store/schema.js';
import { rowById } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { availableDiskGb, findGpus, type GpuDetails } from '../machines/machines.js';
import type { Platform } from '../system/platform.js';
import { obstacleOfOffer } from './offer-obstacle.js';

export type OfferState = 'available' | 'unavailable' | 'withdrawn';

export type OfferDetails = Row<'offers'> & {
  state: OfferState;
  /** For operators: why the offer cannot be rented now; null if it can be or is withdrawn. */
  unavailable_reason: string | null;
  gpu_model: string | null;
  gpu_memory_mb: number | null;
  /** The limits of an instance that is deployed now: its part of the machine's processor and memory. */
  slice: { cpuMillis: number; memoryMb: number };
  /** The machine's GPUs, each with the instance or quarantined workload that holds it. */
  gpus: GpuDetails[];
  machine: Row<'machines'> & {
    disk_available_gb: number;
    connected: boolean;
    /** The start of the present or next maintenance window. */
    next_maintenance: number | null;
  };
};

/** Returns the details of an offer. Its state is derived at each call and never stored. */
export function describeOffer(platform: Platform, tx: Tx, offer: Row<'offers'>): OfferDetails {
  const machine = tx.get(rowById('machines', offer.machine_id));
  if (!machine) throw new Error(`offer ${offer.id} has no machine`);
  const gpus = findGpus(tx, machine.id);
  const model = gpus[0];
  const isWithdrawn = offer.withdrawn_at !== null;
  const obstacle = isWithdrawn ? null : obstacleOfOffer(platform.connections, machine, gpus, offer.num_gpus);
  return {
    ...offer,
    state: isWithdrawn ? 'withdrawn' : obstacle === null ? 'available' : 'unavailable',
    unavailable_reason: obstacle,
    gpu_model: model?.model ?? null,
    gpu_memory_mb: model?.memory_mb ?? null,
    slice: sliceResources(
      { cpuCores: machine.cpu_cores, memoryMb: machine.memory_mb, gpuCount: gpus.length },
      offer.num_gpus,
    ),
    gpus,
    machine: {
      ...machine,
      disk_available_gb: availableDiskGb(platform, tx, machine),
      connected: platform.connections.isConnected(machine.id),
      next_maintenance: (machine.maintenance_ends_at ?? 0) > tx.now ? machine.maintenance_starts_at : null,
    },
  };
}
