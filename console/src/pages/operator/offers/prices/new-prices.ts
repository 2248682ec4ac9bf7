import { parseMoney } from '../../../../data/values/money.js';
import type { OperatedOffer } from '../../models.js';
import type { Terms } from '../terms.js';

/** New prices for several offers as a person types them; empty: it stays. */
export interface PriceDraft {
  price: string;
  /** What the price is for. Offers can differ in their number of GPUs. */
  per: 'gpu' | 'offer';
  storage: string;
}

export type NewPrices = Partial<Pick<Terms, 'price_per_hour_micro' | 'storage_price_per_gb_hour_micro'>>;
export type PriceFaults = Partial<Record<'price' | 'storage', string>>;

export const NO_PRICES: PriceDraft = { price: '', per: 'gpu', storage: '' };

const AMOUNT = 'Give dollars, with at most six digits after the point.';

/** Returns what is wrong with each field. */
export function faultsOf({ price, storage }: PriceDraft): PriceFaults {
  if (isEmpty(price) && isEmpty(storage)) return { price: 'Give a price, or one of the disk.' };
  return {
    ...(!isEmpty(price) && parseMoney(price) === undefined ? { price: AMOUNT } : {}),
    ...(!isEmpty(storage) && parseMoney(storage) === undefined ? { storage: AMOUNT } : {}),
  };
}

/** Returns the new prices of an offer: those that can be read. */
export function pricesFor(
  { num_gpus }: Pick<OperatedOffer, 'num_gpus'>,
  { price, per, storage }: PriceDraft,
): NewPrices {
  const [priceMicro, storageMicro] = [parseMoney(price), parseMoney(storage)];
  return {
    ...(priceMicro === undefined ? {} : { price_per_hour_micro: per === 'gpu' ? priceMicro * num_gpus : priceMicro }),
    ...(storageMicro === undefined ? {} : { storage_price_per_gb_hour_micro: storageMicro }),
  };
}

function isEmpty(text: string): boolean {
  return text.trim() === '';
}
