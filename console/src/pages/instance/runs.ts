import type { MeterInterval } from '../../data/api/models.js';
import { priceOf } from '../../data/values/money.js';

type Charged = Pick<MeterInterval, 'meter' | 'charged_ms' | 'uncovered_micro'>;

/**
 * Returns what each of all intervals of an instance has cost, in micro-dollars; the newest is the first, as in the API. The control plane
 * rounds the price of all time of a meter once, so a price is the difference that its time makes to the price of the time before it:
 * together they are exactly what was charged.
 */
export function chargesOf(
  intervals: readonly Charged[],
  rates: Readonly<Record<MeterInterval['meter'], number>>,
): number[] {
  const ms = { gpu: 0, disk: 0 };
  return intervals
    .toReversed()
    .map(({ meter, charged_ms, uncovered_micro }) => {
      const before = priceOf(rates[meter], ms[meter]);
      ms[meter] += charged_ms;
      return priceOf(rates[meter], ms[meter]) - before - uncovered_micro;
    })
    .reverse();
}
