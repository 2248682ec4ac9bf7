import { queryOptions } from '@tanstack/react-query';
import { api } from '../../../../data/api.js';
import type { Machine, MachineUsage } from '../../models.js';
import { LOOK_AGAIN_MS } from '../../queries.js';

/** What the instances of a machine have used in the last hour, minute by minute. */
export const usageOn = (id: string) =>
  queryOptions({
    queryKey: ['operator', 'usage', id],
    queryFn: async ({ signal }) =>
      (
        await api.get('/v1/operator/machines/{id}/usage', {
          params: { path: { id }, query: { window: '1h' } },
          signal,
        })
      ).instances,
    refetchInterval: LOOK_AGAIN_MS,
  });

export interface GpuUse {
  /** The share of the newest measured minute, and the mean of the measured minutes of an hour. */
  percent: number;
  meanPercent: number;
}

/** Returns what each GPU of a machine is used, by its id. The API counts the GPUs of an instance in the machine's order. */
export function gpuUses({ gpus }: Machine, usage: readonly MachineUsage[]): ReadonlyMap<string, GpuUse> {
  const uses = new Map<string, GpuUse>();
  for (const { instance_id, gpus: measured } of usage)
    gpus
      .filter((gpu) => gpu.instance_id === instance_id)
      .forEach(({ uuid }, index) => {
        const known = measured[index]?.use_percent.filter((percent) => percent !== null) ?? [];
        const newest = known.at(-1);
        if (newest === undefined) return;
        const sum = known.reduce((total, percent) => total + percent, 0);
        uses.set(uuid, { percent: newest, meanPercent: Math.round(sum / known.length) });
      });
  return uses;
}
