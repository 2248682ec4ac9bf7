import type { components } from '../api/index.js';

type InstanceUsage = components['schemas']['InstanceUsage'];
type Series = readonly (number | null)[];

/** The most GPUs that an answer shows. */
const MOST_GPUS = 16;

interface Measured {
  last: number;
  mean: number;
  highest: number;
}

/** Sums up what an instance has used: of each series the last value, the mean and the highest. Null: not measured. */
export function summaryOf({ window, resolution_seconds, at, gpus, ...series }: InstanceUsage): Record<string, unknown> {
  return {
    window,
    resolution_seconds,
    measured_until: at.at(-1) ?? null,
    gpus: gpus.slice(0, MOST_GPUS).map(({ index, ...ofGpu }) => ({
      index,
      ...eachOf(ofGpu),
    })),
    ...eachOf(series),
  };
}

function eachOf(series: Record<string, Series>): Record<string, Measured | null> {
  return Object.fromEntries(Object.entries(series).map(([name, values]) => [name, measured(values)]));
}

function measured(values: Series): Measured | null {
  const known = values.filter((value) => value !== null);
  const last = known.at(-1);
  if (last === undefined) return null;
  const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
  return { last, mean: Math.round(mean * 100) / 100, highest: Math.max(...known) };
}
