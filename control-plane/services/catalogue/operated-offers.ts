import type { Row } from '../../store/schema.js';
import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { newestFirst, pageOf, type Page, type PageRequest } from '../system/pages.js';
import type { Platform } from '../system/platform.js';
import { describeOffer, type OfferDetails } from './offer-details.js';

/** An offer as operators see it. */
export type OperatedOffer = OfferDetails & { rentals: Rental[] };

/** How many instances rent an offer at one price. */
export interface Rental {
  price_per_hour_micro: number;
  instances: number;
}

/** The filter of an operator's list of offers. Absent fields match all. */
export interface OperatedOfferFilter {
  machine_id?: string;
  /** The model of the machine's first GPU, which is that of its offers. */
  gpu_model?: string;
  /** True: withdrawn ones; false: the others, but for those of machines that were removed. */
  withdrawn?: boolean;
}

const IS_OF_PRESENT_MACHINE = sql<boolean>`EXISTS (
  SELECT 1 FROM machines WHERE machines.id = offers.machine_id AND machines.removed_at IS NULL
)`;

/** Lists offers in every state for an operator, newest first. */
export function allOffers(platform: Platform, request: PageRequest & OperatedOfferFilter): Page<OperatedOffer> {
  return platform.store.transact((tx) => {
    const { items, ...rest } = pageOf(tx, operatedOffers(request), request, newestFirst());
    return { ...rest, items: items.map((offer) => describeForOperator(platform, tx, offer)) };
  });
}

/** Selects the offers that a filter matches. Each mixture is read from an index, in the order of the list. */
export function operatedOffers({ machine_id, gpu_model, withdrawn }: OperatedOfferFilter) {
  let all = query.selectFrom('offers').selectAll();
  if (machine_id !== undefined) all = all.where('machine_id', '=', machine_id);
  if (gpu_model !== undefined) all = all.where('gpu_model', '=', gpu_model);
  if (withdrawn === true) all = all.where('withdrawn_at', 'is not', null);
  return withdrawn === false ? all.where('withdrawn_at', 'is', null).where(IS_OF_PRESENT_MACHINE) : all;
}

/** Returns the details of an offer with the prices at which it is rented. */
export function describeForOperator(platform: Platform, tx: Tx, offer: Row<'offers'>): OperatedOffer {
  return { ...describeOffer(platform, tx, offer), rentals: rentalsOf(tx, offer) };
}

/** Returns at which prices instances that are not destroyed rent an offer, the lowest first. */
function rentalsOf(tx: Tx, { id, machine_id }: Row<'offers'>): Rental[] {
  const counts = new Map<number, number>();
  for (const { price_per_hour_micro: price } of tx.all(pricesOf({ machineId: machine_id, offerId: id })))
    counts.set(price, (counts.get(price) ?? 0) + 1);
  return [...counts]
    .map(([price_per_hour_micro, instances]) => ({ price_per_hour_micro, instances }))
    .sort((one, other) => one.price_per_hour_micro - other.price_per_hour_micro);
}

const pricesOf = compileOnce(({ machineId, offerId }: { machineId: string; offerId: string }) =>
  query
    .selectFrom('instances')
    .select('price_per_hour_micro')
    .where('machine_id', '=', machineId)
    .where('offer_id', '=', offerId)
    .where('status', '<>', sql.lit('destroyed')),
);
