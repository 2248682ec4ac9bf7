import { parseMoney, typedMoney } from '../../../data/values/money.js';
import type { OperatedOffer } from '../models.js';

/** The terms of an offer as a person types them. */
export interface TermsDraft {
  price: string;
  storage: string;
  /** Hours; empty: never. */
  release: string;
}

export interface Terms {
  price_per_hour_micro: number;
  storage_price_per_gb_hour_micro: number;
  release_stopped_after_hours: number | null;
}

export const NEW_TERMS: TermsDraft = { price: '', storage: '0.0001', release: '' };

export function draftOf(offer: OperatedOffer): TermsDraft {
  return {
    price: typedMoney(offer.price_per_hour_micro),
    storage: typedMoney(offer.storage_price_per_gb_hour_micro),
    release: offer.release_stopped_after_hours === null ? '' : String(offer.release_stopped_after_hours),
  };
}

export type TermsFaults = Partial<Record<keyof TermsDraft, string>>;

const MOST_HOURS = 8_760;

/** Returns the terms, or what is wrong with each field. */
export function termsOf({ price, storage, release }: TermsDraft): { terms: Terms } | { faults: TermsFaults } {
  const amount = 'Give dollars, with at most six digits after the point.';
  const [priceMicro, storageMicro] = [parseMoney(price), parseMoney(storage)];
  const hours = release.trim() === '' ? null : Number(release);
  const isHours = hours === null || (Number.isInteger(hours) && hours >= 1 && hours <= MOST_HOURS);
  if (priceMicro !== undefined && storageMicro !== undefined && isHours)
    return {
      terms: {
        price_per_hour_micro: priceMicro,
        storage_price_per_gb_hour_micro: storageMicro,
        release_stopped_after_hours: hours,
      },
    };
  return {
    faults: {
      ...(priceMicro === undefined ? { price: amount } : {}),
      ...(storageMicro === undefined ? { storage: amount } : {}),
      ...(isHours ? {} : { release: `Give whole hours from 1 to ${MOST_HOURS}, or nothing.` }),
    },
  };
}
