import { misfitOf } from '../../data/fit.js';
import type { Offer, Template } from '../../data/models.js';
import type { MarketSearch, Sort } from './search.js';

export interface Ranked {
  offer: Offer;
  /** Why the template does not fit; undefined: it does, or none was chosen. */
  misfit: string | undefined;
}

const ORDERS: Readonly<Record<Sort, (a: Offer, b: Offer) => number>> = {
  price: (a, b) => a.price_per_hour_micro - b.price_per_hour_micro,
  memory: (a, b) => memoryOf(b) - memoryOf(a),
  gpus: (a, b) => b.num_gpus - a.num_gpus,
};

/** The memory of all GPUs of an offer together, in MiB. */
export function memoryOf({ gpu_memory_mb, num_gpus }: Offer): number {
  return (gpu_memory_mb ?? 0) * num_gpus;
}

/** Returns the offers that were asked for: those that fit first, each part in the order that was asked for, then by price. */
export function ranked(offers: readonly Offer[], search: MarketSearch, template: Template | undefined): Ranked[] {
  const order = ORDERS[search.sort ?? 'price'];
  return offers
    .filter((offer) => matches(offer, search))
    .map((offer) => ({ offer, misfit: template && misfitOf(template, offer.machine) }))
    .sort(
      (a, b) =>
        Number(a.misfit !== undefined) - Number(b.misfit !== undefined) ||
        order(a.offer, b.offer) ||
        ORDERS.price(a.offer, b.offer),
    );
}

function matches({ gpu_model, num_gpus, machine }: Offer, { gpu, count, region }: MarketSearch): boolean {
  return (
    (gpu === undefined || gpu_model === gpu) &&
    (count === undefined || num_gpus === count) &&
    (region === undefined || machine.region === region)
  );
}

export interface Choice<T> {
  value: T;
  /** How many offers there are with it, among those that the other filters leave. */
  count: number;
}

/** Returns the values of a field among the offers that all other filters leave, with how many have each. */
export function choicesOf<T extends string | number>(
  offers: readonly Offer[],
  search: MarketSearch,
  field: 'gpu' | 'count' | 'region',
  valueOf: (offer: Offer) => T | null,
): Choice<T>[] {
  const { [field]: _own, ...others } = search;
  const counts = new Map<T, number>();
  for (const offer of offers) {
    const value = valueOf(offer);
    if (value !== null && matches(offer, others)) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  const byValue = (a: Choice<T>, b: Choice<T>) =>
    typeof a.value === 'number' ? a.value - Number(b.value) : a.value.localeCompare(String(b.value));
  return [...counts].map(([value, count]) => ({ value, count })).sort(byValue);
}
