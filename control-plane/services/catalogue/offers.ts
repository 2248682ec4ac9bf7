import type { Operator } from '../../domain/caller.js';
import { Refusal, invalidField } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordAudit } from '../system/audit.js';
import { availableDiskGb, findGpus, findMachine, type GpuDetails } from '../machines/machines.js';
import {
  newestFirst,
  pageFrom,
  pageOf,
  type Order,
  type ListOrPage,
  type Page,
  type PageRequest,
} from '../system/pages.js';
import type { Platform } from '../system/platform.js';
import { gpusOfOffers, isFree, obstacleOfOffer } from './offer-obstacle.js';

export type OfferState = 'available' | 'unavailable' | 'withdrawn';

export type OfferDetails = Row<'offers'> & {
  state: OfferState;
  /** For operators: why the offer cannot be rented now; null if it can be or is withdrawn. */
  unavailable_reason: string | null;
  gpu_model: string | null;
  gpu_memory_mb: number | null;
  /** The machine's GPUs, each with the instance or quarantined workload that holds it. */
  gpus: GpuDetails[];
  machine: Row<'machines'> & {
    disk_available_gb: number;
    connected: boolean;
    /** The start of the present or next maintenance window. */
    next_maintenance: number | null;
  };
};

export interface OfferFilter {
  gpu_model?: string;
  num_gpus?: number;
  max_price_per_hour_micro?: number;
  region?: string;
  vm_capable?: boolean;
  sort?: 'price_asc' | 'price_desc' | 'newest';
}

/** Lists the offers that can be rented now. */
export function listOffers(platform: Platform, filter: OfferFilter & PageRequest): ListOrPage<OfferDetails> {
  const { sort = 'price_asc' } = filter;
  const offers = openOffers(platform)
    .filter((offer) => matches(offer, filter))
    .sort(orders[sort]);
  return pageFrom(offers, filter, positions[sort]);
}

function openOffers(platform: Platform): OfferDetails[] {
  const offered = query.selectFrom('offers').selectAll().where('withdrawn_at', 'is', null);
  const all = platform.store.transact((tx) => tx.all(offered).map((offer) => describeOffer(platform, tx, offer)));
  return all.filter(({ state }) => state === 'available');
}

/** Lists offers in every state for an operator, newest first. */
export function allOffers(platform: Platform, request: PageRequest): Page<OfferDetails> {
  return platform.store.transact((tx) => {
    const { items, ...rest } = pageOf(tx, query.selectFrom('offers').selectAll(), request, newestFirst());
    return { ...rest, items: items.map((offer) => describeOffer(platform, tx, offer)) };
  });
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
): OfferDetails {
  return platform.store.transact((tx) => {
    const machine = findMachine(tx, request.machine_id);
    const { length: gpus } = gpusOfOffers(findGpus(tx, machine.id));
    if (request.num_gpus > gpus) throw invalidField('num_gpus', `the machine has only ${gpus} GPU(s) of one model`);
    const row: Row<'offers'> = {
      id: tx.id(),
      release_stopped_after_ms: null,
      ...request,
      machine_id: machine.id,
      created_at: tx.now,
      withdrawn_at: null,
    };
    tx.run(query.insertInto('offers').values(row));
    recordAudit(tx, operator, 'offer.create', row.id, request);
    return describeOffer(platform, tx, row);
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
export function repriceOffer(platform: Platform, operator: Operator, id: string, terms: Partial<Terms>): OfferDetails {
  return platform.store.transact((tx) => {
    const offer = tx.get(query.selectFrom('offers').selectAll().where('id', '=', id).where('withdrawn_at', 'is', null));
    if (!offer) throw new Refusal('OFFER_NOT_FOUND', 'no offer with this id is on the market; it may be withdrawn');
    const { price_per_hour_micro, storage_price_per_gb_hour_micro, release_stopped_after_ms } = { ...offer, ...terms };
    const columns = { price_per_hour_micro, storage_price_per_gb_hour_micro, release_stopped_after_ms };
    tx.run(query.updateTable('offers').set(columns).where('id', '=', id));
    recordAudit(tx, operator, 'offer.reprice', id, columns);
    return describeOffer(platform, tx, { ...offer, ...columns });
  });
}

/** Withdraws an offer for an operator: nobody can rent it any more, and its instances stay. Refuses with OFFER_NOT_FOUND. */
export function withdrawOffer(platform: Platform, operator: Operator, id: string): void {
  platform.store.transact((tx) => {
    const changed = tx.run(
      query.updateTable('offers').set({ withdrawn_at: tx.now }).where('id', '=', id).where('withdrawn_at', 'is', null),
    );
    if (changed === 0)
      throw new Refusal('OFFER_NOT_FOUND', 'no offer with this id is on the market; it may be withdrawn');
    recordAudit(tx, operator, 'offer.withdraw', id);
  });
}

export interface ModelStatus {
  gpu_model: string;
  machines_connected: number;
  gpus_total: number;
  gpus_free: number;
  lowest_price_per_hour_micro: number | null;
}

/** Lists the GPU models of connected machines with the number of machines, GPUs and free GPUs, and the lowest price. */
export function catalogStatus(
  platform: Platform,
  request: PageRequest,
): ListOrPage<ModelStatus> & { updatedAt: number } {
  const { models, updatedAt } = modelsOf(platform);
  const order = { by: { gpu_model: 'asc' }, keyOf: ({ gpu_model }: ModelStatus) => [gpu_model] } as const;
  return { ...pageFrom(models, request, order), updatedAt };
}

function modelsOf(platform: Platform): { models: ModelStatus[]; updatedAt: number } {
  const offers = openOffers(platform);
  return platform.store.transact((tx) => {
    const models = new Map<string, ModelStatus>();
    for (const machineId of platform.connections.connectedIds()) {
      const seen = new Set<string>();
      for (const gpu of findGpus(tx, machineId)) {
        const status = models.get(gpu.model) ?? emptyStatus(gpu.model);
        models.set(gpu.model, status);
        if (!seen.has(gpu.model)) status.machines_connected += 1;
        seen.add(gpu.model);
        status.gpus_total += 1;
        status.gpus_free += isFree(gpu) ? 1 : 0;
      }
    }
    for (const offer of offers) {
      const status = models.get(offer.gpu_model ?? '');
      if (status)
        status.lowest_price_per_hour_micro = Math.min(
          status.lowest_price_per_hour_micro ?? Infinity,
          offer.price_per_hour_micro,
        );
    }
    return { models: [...models.values()].sort((a, b) => a.gpu_model.localeCompare(b.gpu_model)), updatedAt: tx.now };
  });
}

function emptyStatus(gpu_model: string): ModelStatus {
  return { gpu_model, machines_connected: 0, gpus_total: 0, gpus_free: 0, lowest_price_per_hour_micro: null };
}

/** Returns the details of an offer. Its state is derived at each call and never stored. */
export function describeOffer(platform: Platform, tx: Tx, offer: Row<'offers'>): OfferDetails {
  const machine = tx.get(query.selectFrom('machines').selectAll().where('id', '=', offer.machine_id));
  if (!machine) throw new Error(`offer ${offer.id} has no machine`);
  const gpus = findGpus(tx, machine.id);
  const model = gpus[0];
  const isWithdrawn = offer.withdrawn_at !== null;
  const obstacle = isWithdrawn ? null : obstacleOfOffer(platform.connections, machine, gpus, offer.num_gpus);
  return {
    ...offer,
    state: isWithdrawn ? 'withdrawn' : obstacle === null ? 'available' : 'unavailable',
    unavailable_reason: obstacle,
    gpu_model: model?.model ?? null,
    gpu_memory_mb: model?.memory_mb ?? null,
    gpus,
    machine: {
      ...machine,
      disk_available_gb: availableDiskGb(platform, tx, machine),
      connected: platform.connections.isConnected(machine.id),
      next_maintenance: (machine.maintenance_ends_at ?? 0) > tx.now ? machine.maintenance_starts_at : null,
    },
  };
}

function matches(offer: OfferDetails, filter: OfferFilter): boolean {
  return (
    (filter.gpu_model === undefined || offer.gpu_model === filter.gpu_model) &&
    (filter.num_gpus === undefined || offer.num_gpus === filter.num_gpus) &&
    (filter.max_price_per_hour_micro === undefined || offer.price_per_hour_micro <= filter.max_price_per_hour_micro) &&
    (filter.region === undefined || offer.machine.region === filter.region) &&
    (filter.vm_capable === undefined || (offer.machine.vm_capable === 1) === filter.vm_capable)
  );
}

const orders: Record<NonNullable<OfferFilter['sort']>, (a: OfferDetails, b: OfferDetails) => number> = {
  price_asc: (a, b) => a.price_per_hour_micro - b.price_per_hour_micro || a.id.localeCompare(b.id),
  price_desc: (a, b) => b.price_per_hour_micro - a.price_per_hour_micro || a.id.localeCompare(b.id),
  newest: (a, b) => b.created_at - a.created_at || a.id.localeCompare(b.id),
};

const byPrice = ({ price_per_hour_micro, id }: OfferDetails) => [price_per_hour_micro, id];
const positions: Record<NonNullable<OfferFilter['sort']>, Order<OfferDetails>> = {
  price_asc: { by: { price: 'asc', id: 'asc' }, keyOf: byPrice },
  price_desc: { by: { price: 'desc', id: 'asc' }, keyOf: byPrice },
  newest: newestFirst(),
};
