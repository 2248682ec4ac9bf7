import { known, textIn, wordIn } from '../../data/forms/address.js';
import { parseMoney, typedMoney } from '../../data/values/money.js';
import type { Wanted } from '../../data/instances/offers.js';

/** The orders by their names in the address, each with that of the API. */
const SORTS = { price: 'price_asc', memory: 'memory_desc', gpus: 'gpus_desc' } as const;
export type Sort = keyof typeof SORTS;
const SORT_NAMES = Object.keys(SORTS) as Sort[];

/** What the market is asked for. */
export interface MarketSearch {
  /** The id of the template that is to run. */
  template?: string;
  gpu?: string;
  count?: number;
  region?: string;
  /** The highest price per hour, in dollars. */
  price?: number;
  /** Only machines that can run virtual machines. */
  vm?: true;
  sort?: Sort;
}

/** What each filter is called without which more may be found. */
export const LOOSER = {
  gpu: 'Any GPU',
  count: 'Any number of GPUs',
  region: 'Any region',
  price: 'Any price',
  vm: 'Also machines that run no virtual machines',
} as const satisfies { [Name in keyof MarketSearch]?: string };
type Filter = keyof typeof LOOSER;
const FILTERS = Object.keys(LOOSER) as Filter[];

const LONGEST = 200;

/** Reads the address; what it does not know is left out. */
export function marketSearch(given: Record<string, unknown>): MarketSearch {
  const count = Number(given['count']);
  return known({
    template: textIn(given['template'], LONGEST),
    gpu: textIn(given['gpu'], LONGEST),
    count: Number.isSafeInteger(count) && count > 0 ? count : undefined,
    region: textIn(given['region'], LONGEST),
    price: dollarsOf(microOf(given['price'])),
    vm: given['vm'] === true ? (true as const) : undefined,
    sort: wordIn(SORT_NAMES, given['sort']),
  });
}

/** Returns the highest price of an address in micro-dollars. Six digits after the point and nine before it are exact in a number. */
export function microOf(price: unknown): number | undefined {
  return parseMoney(textIn(price, LONGEST) ?? '');
}

/** Returns an amount as it stands in the address. */
export function dollarsOf(micro: number | undefined): number | undefined {
  return micro === undefined ? undefined : Number(typedMoney(micro));
}

/** Returns the filters that an address has. */
export function filtersOf(search: MarketSearch): Filter[] {
  return FILTERS.filter((name) => search[name] !== undefined);
}

/** Returns the offers that an address asks for; `template`: its template, if there is one. */
export function wantedOf({ gpu, count, region, price, vm, sort }: MarketSearch, template: string | undefined): Wanted {
  return known({
    template_id: template,
    gpu_model: gpu,
    num_gpus: count,
    region,
    max_price_per_hour_micro: microOf(price),
    vm_capable: vm,
    sort: sort && SORTS[sort],
  });
}
