export const SORTS = ['price', 'memory', 'gpus'] as const;
export type Sort = (typeof SORTS)[number];

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
  const [known, number] = [SORTS.find((each) => each === sort), Number(count)];
  return {
    ...textOf('template', template),
    ...textOf('gpu', gpu),
    ...textOf('region', region),
    ...(Number.isInteger(number) && number > 0 ? { count: number } : {}),
    ...(known ? { sort: known } : {}),
  };
}

function textOf<Name extends string>(name: Name, value: unknown): Partial<Record<Name, string>> {
  return typeof value === 'string' && value !== '' && value.length <= LONGEST
    ? ({ [name]: value } as Record<Name, string>)
    : {};
}
