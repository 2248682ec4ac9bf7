import { expect, it } from 'vitest';
import type { TemplateNeeds } from '../../control-plane/domain/catalogue/template-fit.js';
import {
  countsOf,
  listOf,
  MOST_VALUES,
  ORDERS,
  SORTS,
  type OfferFilter,
  type Sort,
} from '../../control-plane/services/catalogue/market-list.js';
import type { OfferDetails } from '../../control-plane/services/catalogue/offer-details.js';

interface Facts {
  gpu_model: string;
  region: string;
  vm_capable: number;
  cuda_version: string;
}

/** Offers with every mixture of what is filtered, sorted and needed. */
const OFFERS = Array.from({ length: 120 }, (_, index) =>
  offer(index, {
    gpu_model: `GPU ${index % 3}`,
    region: index % 4 === 0 ? '' : `region-${index % 4}`,
    vm_capable: index % 2,
    cuda_version: index % 5 === 0 ? '12.10' : '12.9',
  }),
);
const VM_ON_OLD_CUDA: TemplateNeeds = { kind: 'vm', arch: 'x86_64', cuda_max: '12.9', cuda_min: null, coming_soon: 0 };
const isFit = ({ machine }: OfferDetails) => machine.vm_capable === 1 && machine.cuda_version === '12.9';

function offer(index: number, { gpu_model, ...machine }: Facts): OfferDetails {
  return {
    id: `${index}`.padStart(4, '0'),
    gpu_model,
    machine,
    num_gpus: 1 + (index % 4),
    gpu_memory_mb: 1e3 * (index % 3),
    price_per_hour_micro: 1e3 * (index % 7),
    created_at: index % 11,
  } as unknown as OfferDetails;
}

const inOrder = (sort: Sort) => [...OFFERS].sort(ORDERS[sort]);
const idsOf = (offers: readonly OfferDetails[]) => offers.map(({ id }) => id);

it.each(SORTS)('the pages by %s have each offer once, those that a template fits first', (sort) => {
  for (const needs of [undefined, VM_ON_OLD_CUDA]) {
    const asked = { sort, max_price_per_hour_micro: 5_000, ...(needs ? { needs } : {}) };
    const wanted = inOrder(sort).filter(({ price_per_hour_micro }) => price_per_hour_micro <= 5_000);
    const ranked = needs ? [...wanted.filter(isFit), ...wanted.filter((one) => !isFit(one))] : wanted;
    const { items: whole } = listOf(inOrder(sort), asked);
    expect(idsOf(whole)).toEqual(idsOf(ranked));
    const read: OfferDetails[] = [];
    for (let cursor: string | null | undefined = undefined; cursor !== null;) {
      const page = listOf(inOrder(sort), { ...asked, limit: 7, ...(cursor === undefined ? {} : { cursor }) });
      read.push(...page.items);
      cursor = page.next_cursor ?? null;
    }
    expect(idsOf(read)).toEqual(idsOf(ranked));
  }
});

it('a page goes on after its last offer, also when that one was rented meanwhile', () => {
  const asked = { sort: 'memory_desc', needs: VM_ON_OLD_CUDA, limit: 10 } as const;
  const { items, next_cursor } = listOf(inOrder('memory_desc'), asked);
  const left = inOrder('memory_desc').filter(({ id }) => id !== items.at(-1)?.id);
  const next = listOf(left, { ...asked, cursor: next_cursor ?? '' });
  const { items: whole } = listOf(inOrder('memory_desc'), { sort: 'memory_desc', needs: VM_ON_OLD_CUDA });
  expect(idsOf(next.items)).toEqual(idsOf(whole).slice(10, 20));
});

it.each<OfferFilter>([
  {},
  { gpu_model: 'GPU 1' },
  { gpu_model: 'GPU 1', num_gpus: 2 },
  { region: 'region-1', vm_capable: true, max_price_per_hour_micro: 3_000 },
  { gpu_model: 'none' },
])('the counts for %j are those of the lists', (filter) => {
  const counts = countsOf(OFFERS, { ...filter, needs: VM_ON_OLD_CUDA });
  const sizeOf = (asked: OfferFilter) => listOf(OFFERS, asked).items.length;
  expect(counts.offers).toBe(sizeOf(filter));
  expect(counts.fitting).toBe(listOf(OFFERS, filter).items.filter(isFit).length);
  const { gpu_model: _model, ...anyModel } = filter;
  const { num_gpus: _number, ...anyNumber } = filter;
  const { region: _region, ...anyRegion } = filter;
  for (const { value, offers } of counts.gpu_models) expect(offers).toBe(sizeOf({ ...anyModel, gpu_model: value }));
  for (const { value, offers } of counts.num_gpus) expect(offers).toBe(sizeOf({ ...anyNumber, num_gpus: value }));
  for (const { value, offers } of counts.regions) expect(offers).toBe(sizeOf({ ...anyRegion, region: value }));
  const sum = (values: { offers: number }[]) => values.reduce((total, { offers }) => total + offers, 0);
  expect(sum(counts.gpu_models)).toBe(sizeOf(anyModel));
  expect(sum(counts.num_gpus)).toBe(sizeOf(anyNumber));
  expect(countsOf(OFFERS, filter).fitting).toBeNull();
});

it('a template fits machines from its oldest to its newest CUDA version', () => {
  const fitting = (cuda: Pick<TemplateNeeds, 'cuda_min' | 'cuda_max'>) =>
    countsOf(OFFERS, { needs: { ...VM_ON_OLD_CUDA, kind: 'container', ...cuda } }).fitting;
  expect(fitting({ cuda_min: '12.9', cuda_max: null })).toBe(120);
  expect(fitting({ cuda_min: '12.10', cuda_max: null })).toBe(24);
  expect(fitting({ cuda_min: '12.9', cuda_max: '12.9' })).toBe(96);
  expect(fitting({ cuda_min: '13', cuda_max: null })).toBe(0);
});

it('no template that is only announced, or is for another processor, fits anywhere', () => {
  for (const wrong of [{ coming_soon: 1 }, { arch: 'arm64' }]) {
    const needs: TemplateNeeds = { ...VM_ON_OLD_CUDA, kind: 'container', cuda_max: null, ...wrong };
    expect(countsOf(OFFERS, { needs }).fitting).toBe(0);
  }
});

it('however many regions the hosts have, only the most common are counted apart', () => {
  const facts = { gpu_model: 'GPU', vm_capable: 1, cuda_version: '12.9' };
  const many = Array.from({ length: 1_000 }, (_, index) =>
    offer(index, { ...facts, region: index < 500 ? 'big' : `region-${index}` }),
  );
  const { regions } = countsOf(many, {});
  expect(regions).toHaveLength(MOST_VALUES);
  expect(regions[0]).toEqual({ value: 'big', offers: 500 });
});
