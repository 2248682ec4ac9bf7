import { LRUCache } from 'lru-cache';
import { SortedList } from '../../domain/catalogue/sorted-list.js';
import type { TemplateNeeds } from '../../domain/catalogue/template-fit.js';
import { compileOnce, query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { findGpus } from '../machines/machines.js';
import type { ListOrPage } from '../system/pages.js';
import type { Platform } from '../system/platform.js';
import {
  countsOf,
  listOf,
  ORDERS,
  SORTS,
  type OfferCounts,
  type OfferFilter,
  type OfferQuery,
  type Sort,
} from './market-list.js';
import { describeOffer, type OfferDetails } from './offer-details.js';
import { isFree } from './offer-obstacle.js';

export interface ModelStatus {
  gpu_model: string;
  machines_connected: number;
  gpus_total: number;
  gpus_free: number;
  lowest_price_per_hour_micro: number | null;
}

/** What one connected machine adds to the market. */
interface Stall {
  offers: readonly OfferDetails[];
  models: ReadonlyMap<string, { total: number; free: number }>;
  /** When its maintenance window ends, in ms since 1970; Infinity: none is planned. */
  changesAt: number;
}

/** How much is remembered until the market changes: about 50 MB of answers, and the smallest counts like one with 1,000 offers. */
const MOST_OFFERS = 100_000;
const LEAST_OFFERS = 1_000;

export interface HasMarket {
  market: Market;
}

/** Makes the market of a control plane, which each change of a row or of a host's connection moves. */
export function makeMarket(platform: Platform): Market {
  const market = new Market(platform);
  const { store, connections } = platform;
  const touch = (machineId: string) => market.touch(machineId);
  for (const table of [
    'gpus',
    'gpu_claims',
    'machines',
    'offers',
    'instance_disks',
    'quarantine',
    'quarantine_gpus',
  ] as const)
    store.onChange(table, touch);
  store.onUnknownChange(() => market.touchAll());
  connections.onChange(touch);
  return market;
}

/**
 * What can be rented now, and the GPUs of connected machines. Knows the offers of each connected machine, and reads a machine again when
 * it is touched; nothing of a machine that is not connected can be rented.
 */
export class Market {
  private readonly stalls = new Map<string, Stall>();
  private touched = new Set<string>();
  /** The earliest `changesAt` of all stalls. */
  private changesAt = Infinity;
  private readonly lists = new LRUCache<string, ListOrPage<OfferDetails>>({
    maxSize: MOST_OFFERS,
    sizeCalculation: ({ items }) => Math.max(LEAST_OFFERS, items.length),
  });
  private readonly counts = new LRUCache<string, OfferCounts>({ max: MOST_OFFERS / LEAST_OFFERS });
  private models: ModelStatus[] | undefined;
  private readonly available = Object.fromEntries(
    SORTS.map((sort) => [sort, new SortedList(ORDERS[sort])]),
  ) as Readonly<Record<Sort, SortedList<OfferDetails>>>;

  constructor(private readonly platform: Platform) {
    this.touchAll();
  }

  /** Must be called when something of a machine, or of its host, may have changed. */
  touch(machineId: string): void {
    this.touched.add(machineId);
  }

  touchAll(): void {
    for (const machineId of [...this.stalls.keys(), ...this.platform.connections.connectedIds()]) this.touch(machineId);
  }

  /** Lists the offers that can be rented now; the same object while nothing changes. */
  offers(asked: OfferQuery): ListOrPage<OfferDetails> {
    this.refresh();
    const key = JSON.stringify(asked);
    const known = this.lists.get(key);
    if (known) return known;
    const list = listOf(this.available[asked.sort ?? 'price_asc'].items, asked);
    this.lists.set(key, list);
    return list;
  }

  /** Counts the offers that can be rented now. */
  count(asked: OfferFilter & { needs?: TemplateNeeds | undefined }): OfferCounts {
    this.refresh();
    const key = JSON.stringify(asked);
    const known = this.counts.get(key);
    if (known) return known;
    const counts = countsOf(this.available.price_asc.items, asked);
    this.counts.set(key, counts);
    return counts;
  }

  /** Lists the GPU models of connected machines by name. */
  status(): readonly ModelStatus[] {
    this.refresh();
    return (this.models ??= this.countModels());
  }

  private refresh(): void {
    const { connections, clock, store } = this.platform;
    connections.noteSilence();
    if (this.changesAt <= clock.now()) this.touchChanging(clock.now());
    if (this.touched.size === 0) return;
    const { touched } = this;
    this.touched = new Set();
    this.lists.clear();
    this.counts.clear();
    this.models = undefined;
    store.transact((tx) => {
      for (const machineId of touched) this.replace(machineId, this.read(tx, machineId));
    });
  }

  private touchChanging(now: number): void {
    this.changesAt = Infinity;
    for (const [machineId, { changesAt }] of this.stalls) {
      if (changesAt <= now) this.touch(machineId);
      else this.changesAt = Math.min(this.changesAt, changesAt);
    }
  }

  private replace(machineId: string, stall: Stall | undefined): void {
    for (const list of Object.values(this.available)) {
      for (const offer of this.stalls.get(machineId)?.offers ?? []) list.remove(offer);
      for (const offer of stall?.offers ?? []) list.add(offer);
    }
    if (stall) this.stalls.set(machineId, stall);
    else this.stalls.delete(machineId);
    this.changesAt = Math.min(this.changesAt, stall?.changesAt ?? Infinity);
  }

  private read(tx: Tx, machineId: string): Stall | undefined {
    if (!this.platform.connections.isConnected(machineId)) return undefined;
    const details = tx.all(openOffersOf({ machineId })).map((offer) => describeOffer(this.platform, tx, offer));
    const gpus = details[0]?.gpus ?? findGpus(tx, machineId);
    const models = new Map<string, { total: number; free: number }>();
    for (const gpu of gpus) {
      const { total, free } = models.get(gpu.model) ?? { total: 0, free: 0 };
      models.set(gpu.model, { total: total + 1, free: free + (isFree(gpu) ? 1 : 0) });
    }
    const windowEnds = details[0]?.machine.next_maintenance == null ? null : details[0].machine.maintenance_ends_at;
    return {
      offers: details.filter(({ state }) => state === 'available'),
      models,
      changesAt: windowEnds ?? Infinity,
    };
  }

  private countModels(): ModelStatus[] {
    const counted = new Map<string, ModelStatus>();
    for (const { models } of this.stalls.values()) {
      for (const [gpu_model, { total, free }] of models) {
        const status = counted.get(gpu_model) ?? { ...NOTHING, gpu_model };
        counted.set(gpu_model, {
          ...status,
          machines_connected: status.machines_connected + 1,
          gpus_total: status.gpus_total + total,
          gpus_free: status.gpus_free + free,
        });
      }
    }
    for (const { gpu_model, price_per_hour_micro } of this.available.price_asc.items) {
      const status = counted.get(gpu_model ?? '');
      if (status) status.lowest_price_per_hour_micro ??= price_per_hour_micro;
    }
    return [...counted.values()].sort((a, b) => a.gpu_model.localeCompare(b.gpu_model));
  }
}

const NOTHING = { machines_connected: 0, gpus_total: 0, gpus_free: 0, lowest_price_per_hour_micro: null };

const openOffersOf = compileOnce(({ machineId }: { machineId: string }) =>
  query.selectFrom('offers').selectAll().where('machine_id', '=', machineId).where('withdrawn_at', 'is', null),
);
