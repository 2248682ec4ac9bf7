import type { Wanted } from '../../data/offers.js';

/** The orders by their names in the address, each with that of the API. */
const SORTS = { price: 'price_asc', memory: 'memory_desc', gpus: 'gpus_desc' } as const;
export type Sort = keyof typeof SORTS;

/** What the market is asked for. */
export interface MarketSearch {
  /** The id of the template that is to run. */
  template?: string;
  gpu?: string;
  count?: number;
  region?: string;
  sort?: Sort;
}

const LONGEST = 200;

/** Reads the address; what it does not know is left out. */
export function marketSearch({ template, gpu, count, region, sort }: Record<string, unknown>): MarketSearch {
  const number = Number(count);
  return {
    ...textOf('template', template),
    ...textOf('gpu', gpu),
    ...textOf('region', region),
    ...(Number.isSafeInteger(number) && number > 0 ? { count: number } : {}),
    ...(isSort(sort) ? { sort } : {}),
  };
}

/** Returns the offers that an address asks for; `template`: its template, if there is one. */
export function wantedOf({ gpu, count, region, sort }: MarketSearch, template: string | undefined): Wanted {
  return {
    ...(template === undefined ? {} : { template_id: template }),
    ...(gpu === undefined ? {} : { gpu_model: gpu }),
    ...(count === undefined ? {} : { num_gpus: count }),
    ...(region === undefined ? {} : { region }),
    ...(sort === undefined ? {} : { sort: SORTS[sort] }),
  };
}

function isSort(value: unknown): value is Sort {
  return typeof value === 'string' && Object.hasOwn(SORTS, value);
}

function textOf<Name extends string>(name: Name, value: unknown): Partial<Record<Name, string>> {
  return typeof value === 'string' && value !== '' && value.length <= LONGEST
    ? ({ [name]: value } as Record<Name, string>)
    : {};
}
