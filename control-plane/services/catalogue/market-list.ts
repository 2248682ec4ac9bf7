import { fits, type TemplateNeeds } from '../../domain/catalogue/template-fit.js';
import { newestFirst, pageFrom, type ListOrPage, type Order, type PageRequest } from '../system/pages.js';
import type { OfferDetails } from './offer-details.js';

export interface OfferFilter {
  gpu_model?: string;
  num_gpus?: number;
  max_price_per_hour_micro?: number;
  region?: string;
  vm_capable?: boolean;
}

export const SORTS = ['price_asc', 'price_desc', 'newest', 'memory_desc', 'gpus_desc'] as const;
export type Sort = (typeof SORTS)[number];

/** What a list of offers is asked for. With `needs`, the offers whose machines can run such a template come first. */
export interface OfferQuery extends OfferFilter, PageRequest {
  sort?: Sort;
  needs?: TemplateNeeds;
}

/** How many offers have a value, among those that all other filters leave. */
export interface ValueCount<Value> {
  value: Value;
  offers: number;
}

export interface OfferCounts {
  offers: number;
  /** Those of them whose machines can run the template; null: none was named. */
  fitting: number | null;
  gpu_models: ValueCount<string>[];
  num_gpus: ValueCount<number>[];
  regions: ValueCount<string>[];
}

/** Host owners name models and regions: most values that are counted apart. */
export const MOST_VALUES = 100;

type Compare = (a: OfferDetails, b: OfferDetails) => number;

const byId: Compare = (a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
const byPrice: Compare = (a, b) => a.price_per_hour_micro - b.price_per_hour_micro || byId(a, b);

/** The memory of all GPUs of an offer together, in MB. */
const memoryOf = ({ gpu_memory_mb, num_gpus }: OfferDetails) => (gpu_memory_mb ?? 0) * num_gpus;

/** The orders of the list. In none are two offers equal. */
export const ORDERS: Readonly<Record<Sort, Compare>> = {
  price_asc: byPrice,
  price_desc: (a, b) => b.price_per_hour_micro - a.price_per_hour_micro || byId(a, b),
  newest: (a, b) => b.created_at - a.created_at || byId(a, b),
  memory_desc: (a, b) => memoryOf(b) - memoryOf(a) || byPrice(a, b),
  gpus_desc: (a, b) => b.num_gpus - a.num_gpus || byPrice(a, b),
};

const priceOf = ({ price_per_hour_micro, id }: OfferDetails) => [price_per_hour_micro, id];
const POSITIONS: Readonly<Record<Sort, Order<OfferDetails>>> = {
  price_asc: { by: { price: 'asc', id: 'asc' }, keyOf: priceOf },
  price_desc: { by: { price: 'desc', id: 'asc' }, keyOf: priceOf },
  newest: newestFirst(),
  memory_desc: {
    by: { memory: 'desc', price: 'asc', id: 'asc' },
    keyOf: (offer) => [memoryOf(offer), ...priceOf(offer)],
  },
  gpus_desc: { by: { gpus: 'desc', price: 'asc', id: 'asc' }, keyOf: (offer) => [offer.num_gpus, ...priceOf(offer)] },
};

/** Returns what was asked for of offers that are in the order that was asked for: a page, or all of them. */
export function listOf(offers: readonly OfferDetails[], asked: OfferQuery): ListOrPage<OfferDetails> {
  const { needs, sort = 'price_asc' } = asked;
  const found = offers.filter((offer) => FILTERS.every((passes) => passes(offer, asked)));
  const order = POSITIONS[sort];
  if (needs === undefined) return pageFrom(found, asked, order);
  const rankOf = ({ machine }: OfferDetails) => (fits(needs, machine) ? 0 : 1);
  const ranked = [0, 1].flatMap((rank) => found.filter((offer) => rankOf(offer) === rank));
  const by = { rank: 'asc', ...order.by } as const;
  return pageFrom(ranked, asked, { by, keyOf: (offer) => [rankOf(offer), ...order.keyOf(offer)] });
}

/** Counts the offers that a filter leaves, and for each choice of a person what else could be chosen, the most common first. */
export function countsOf(
  offers: readonly OfferDetails[],
  asked: OfferFilter & { needs?: TemplateNeeds | undefined },
): OfferCounts {
  const { needs } = asked;
  const [models, numbers, regions] = [new Counter<string>(), new Counter<number>(), new Counter<string>()];
  let [all, fitting] = [0, 0];
  for (const offer of offers) {
    if (!OTHERS.every((passes) => passes(offer, asked))) continue;
    const { gpu_model, num_gpus, machine } = offer;
    const [isModel, isNumber, isRegion] = CHOICES.map((passes) => passes(offer, asked));
    if (isNumber && isRegion && gpu_model !== null) models.add(gpu_model);
    if (isModel && isRegion) numbers.add(num_gpus);
    if (isModel && isNumber && machine.region !== '') regions.add(machine.region);
    if (!isModel || !isNumber || !isRegion) continue;
    all += 1;
    if (needs && fits(needs, machine)) fitting += 1;
  }
  const [gpu_models, num_gpus] = [models.most(), numbers.most()];
  return { offers: all, fitting: needs ? fitting : null, gpu_models, num_gpus, regions: regions.most() };
}

type Passes = (offer: OfferDetails, filter: OfferFilter) => boolean;

/** The filters whose values are counted: by model, by number of GPUs, by region. */
const CHOICES: readonly Passes[] = [
  (offer, { gpu_model }) => gpu_model === undefined || offer.gpu_model === gpu_model,
  (offer, { num_gpus }) => num_gpus === undefined || offer.num_gpus === num_gpus,
  ({ machine }, { region }) => region === undefined || machine.region === region,
];
const OTHERS: readonly Passes[] = [
  ({ price_per_hour_micro }, { max_price_per_hour_micro: most }) => most === undefined || price_per_hour_micro <= most,
  ({ machine }, { vm_capable }) => vm_capable === undefined || (machine.vm_capable === 1) === vm_capable,
];
const FILTERS = [...CHOICES, ...OTHERS];

class Counter<Value extends string | number> {
  private readonly counts = new Map<Value, number>();

  add(value: Value): void {
    this.counts.set(value, (this.counts.get(value) ?? 0) + 1);
  }

  most(): ValueCount<Value>[] {
    const counted = Array.from(this.counts, ([value, offers]) => ({ value, offers }));
    return counted.sort((a, b) => b.offers - a.offers || (a.value < b.value ? -1 : 1)).slice(0, MOST_VALUES);
  }
}
