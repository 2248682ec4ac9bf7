import type { Caller, Operator } from '../../domain/caller.js';
import { Refusal, invalidField } from '../../domain/refusal.js';
import type { TemplateNeeds } from '../../domain/catalogue/template-fit.js';
import type { Row } from '../../store/schema.js';
import { query } from '../../store/sql.js';
import { recordAudit } from '../system/audit.js';
import { findGpus, findMachine } from '../machines/machines.js';
import { pageFrom, type ListOrPage, type PageRequest } from '../system/pages.js';
import type { Core, Platform } from '../system/platform.js';
import type { OfferCounts, OfferFilter, OfferQuery } from './market-list.js';
import type { HasMarket, ModelStatus } from './market.js';
import { describeOffer, type OfferDetails } from './offer-details.js';
import { gpusOfOffers } from './offer-obstacle.js';
import { describeForOperator, type OperatedOffer } from './operated-offers.js';
import { findTemplate } from './templates.js';

/** Of a request, what its template adds: offers whose machines can run it come first. */
interface ForTemplate {
  template_id?: string;
}

/** Lists the offers that can be rented now; the same object while nothing changes. Refuses with TEMPLATE_NOT_FOUND. */
export function listOffers(
  platform: Platform & HasMarket,
  caller: Caller,
  { template_id, ...asked }: Omit<OfferQuery, 'needs'> & ForTemplate,
): ListOrPage<OfferDetails> {
  return platform.market.offers({ ...asked, ...needsOf(platform, caller, template_id) });
}

/** Counts the offers that can be rented now, by what a person can choose. Refuses with TEMPLATE_NOT_FOUND. */
export function countOffers(
  platform: Platform & HasMarket,
  caller: Caller,
  { template_id, ...filter }: OfferFilter & ForTemplate,
): OfferCounts {
  return platform.market.count({ ...filter, ...needsOf(platform, caller, template_id) });
}

function needsOf(core: Core, caller: Caller, templateId: string | undefined): { needs?: TemplateNeeds } {
  if (templateId === undefined) return {};
  const { kind, arch, cuda_max, cuda_min, coming_soon } = core.store.transact((tx) =>
    findTemplate(tx, caller.organizationId, templateId),
  );
  return { needs: { kind, arch, cuda_max, cuda_min, coming_soon } };
}

/** Returns an offer in any state. Refuses with OFFER_NOT_FOUND. */
export function getOffer(platform: Platform, id: string): OfferDetails {
  return platform.store.transact((tx) => {
    const offer = tx.get(query.selectFrom('offers').selectAll().where('id', '=', id));
    if (!offer) throw new Refusal('OFFER_NOT_FOUND', 'no offer has this id');
    return describeOffer(platform, tx, offer);
  });
}

/**
 * Offers `num_gpus` GPUs of a machine at a price, for an operator. Refuses with MACHINE_NOT_FOUND, and with VALIDATION_FAILED if
 * the machine has fewer GPUs of one model.
 */
export function createOffer(
  platform: Platform,
  operator: Operator,
  request: {
    machine_id: string;
    num_gpus: number;
    price_per_hour_micro: number;
    storage_price_per_gb_hour_micro: number;
    release_stopped_after_ms?: number | null;
  },
): OperatedOffer {
  return platform.store.transact((tx) => {
    const machine = findMachine(tx, request.machine_id);
    const present = findGpus(tx, machine.id);
    const { length: gpus } = gpusOfOffers(present);
    if (request.num_gpus > gpus) throw invalidField('num_gpus', `the machine has only ${gpus} GPU(s) of one model`);
    const row: Row<'offers'> = {
      id: tx.id(),
      release_stopped_after_ms: null,
      ...request,
      machine_id: machine.id,
      created_at: tx.now,
      withdrawn_at: null,
      gpu_model: present[0]?.model ?? null,
    };
    tx.run(query.insertInto('offers').values(row));
    recordAudit(tx, operator, 'offer.create', row.id, request);
    return describeForOperator(platform, tx, row);
  });
}

export type Terms = Pick<
  Row<'offers'>,
  'price_per_hour_micro' | 'storage_price_per_gb_hour_micro' | 'release_stopped_after_ms'
>;

/**
 * Changes the terms of an offer for an operator. They hold for later deploys; instances keep theirs. Refuses with
 * OFFER_NOT_FOUND.
 */
export function repriceOffer(platform: Platform, operator: Operator, id: string, terms: Partial<Terms>): OperatedOffer {
  return platform.store.transact((tx) => {
    const offer = tx.get(query.selectFrom('offers').selectAll().where('id', '=', id).where('withdrawn_at', 'is', null));
    if (!offer) throw new Refusal('OFFER_NOT_FOUND', 'no offer with this id is on the market; it may be withdrawn');
    const { price_per_hour_micro, storage_price_per_gb_hour_micro, release_stopped_after_ms } = { ...offer, ...terms };
    const columns = { price_per_hour_micro, storage_price_per_gb_hour_micro, release_stopped_after_ms };
    tx.run(query.updateTable('offers').set(columns).where('id', '=', id));
    recordAudit(tx, operator, 'offer.reprice', id, columns);
    return describeForOperator(platform, tx, { ...offer, ...columns });
  });
}

/** Withdraws an offer for an operator: nobody can rent it any more, and its instances stay. Refuses with OFFER_NOT_FOUND. */
export function withdrawOffer(core: Core, operator: Operator, id: string): void {
  core.store.transact((tx) => {
    const changed = tx.run(
      query.updateTable('offers').set({ withdrawn_at: tx.now }).where('id', '=', id).where('withdrawn_at', 'is', null),
    );
    if (changed === 0)
      throw new Refusal('OFFER_NOT_FOUND', 'no offer with this id is on the market; it may be withdrawn');
    recordAudit(tx, operator, 'offer.withdraw', id);
  });
}

/** Lists the GPU models of connected machines with the number of machines, GPUs and free GPUs, and the lowest price. */
export function catalogStatus(
  { market, clock }: Platform & HasMarket,
  request: PageRequest,
): ListOrPage<ModelStatus> & { updatedAt: number } {
  const models = [...market.status()];
  const order = { by: { gpu_model: 'asc' }, keyOf: ({ gpu_model }: ModelStatus) => [gpu_model] } as const;
  return { ...pageFrom(models, request, order), updatedAt: clock.now() };
}
