import type { components, Gpurent } from '../../api/index.js';

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

/** Says what an offer is, in a few words. */
export const wordsOfOffer = ({ num_gpus, gpu_model, machine }: Offer): string =>
  `${num_gpus} x ${gpu_model ?? 'no GPU'} on ${machine.name}${machine.region ? ` (${machine.region})` : ''}`;
