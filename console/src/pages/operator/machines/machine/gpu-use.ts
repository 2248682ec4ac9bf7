import type { Machine, MachineUsage } from '../../models.js';

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
