import type { components, Gpurent } from '../../api/index.js';
import { cpuCores, memory } from '../../text/sizes.js';

type Offer = components['schemas']['Offer'];

export interface OfferFilter {
  gpus?: number;
  maxPrice?: number;
  region?: string;
  vm?: true;
  sort?: 'price_asc' | 'price_desc' | 'newest';
}

/** Returns the offers that can be rented now, the cheapest first unless `sort` says otherwise. */
export async function offersFor(gpurent: Gpurent, { gpus, maxPrice, region, vm, sort }: OfferFilter): Promise<Offer[]> {
  const query = {
    ...(gpus === undefined ? {} : { num_gpus: gpus }),
    ...(maxPrice === undefined ? {} : { max_price_per_hour_micro: maxPrice }),
    ...(region === undefined ? {} : { region }),
    ...(vm === undefined ? {} : { vm_capable: vm }),
    ...(sort === undefined ? {} : { sort }),
  };
  return (await gpurent.get('/v1/offers', { params: { query } })).items;
}

/** Tells whether an offer's GPUs are of a model whose name has this in it. */
export const matchesModel = ({ gpu_model }: Pick<Offer, 'gpu_model'>, wanted: string | undefined): boolean =>
  wanted === undefined || (gpu_model ?? '').toLowerCase().includes(wanted.toLowerCase());

/** The smallest and the largest disk of any instance, in GB. */
const LEAST_DISK_GB = 10;
const MOST_DISK_GB = 20_000;

/** Returns the sizes in GB that a disk on the machine of an offer can have now. A machine without room for the smallest is refused later. */
export const disksOf = ({ machine }: { machine: Pick<Offer['machine'], 'disk_available_gb'> }) => ({
  least: LEAST_DISK_GB,
  most: Math.max(LEAST_DISK_GB, Math.min(machine.disk_available_gb, MOST_DISK_GB)),
});

/** Says what an instance of an offer gets, and where, in a few words. */
export const wordsOfOffer = ({ num_gpus, gpu_model, cpu_cores, memory_mb, machine }: Offer): string =>
  `${num_gpus} x ${gpu_model ?? 'no GPU'}, ${cpuCores(cpu_cores)}, ${memory(memory_mb)} memory on ${machine.name}${machine.region ? ` (${machine.region})` : ''}`;
