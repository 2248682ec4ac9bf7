import { machinesOfDay } from '../billing/reports/revenue-days.js';
import type { Core } from '../system/platform.js';
import type { HasFleet } from './fleet.js';
import { MOST_MODELS } from './gpu-sums.js';

export interface ModelRevenue {
  /** The model of the first GPU of the machines; null: of further models, and of removed machines. */
  gpu_model: string | null;
  gpu_micro: number;
  disk_micro: number;
  machines: number;
}

/** Returns the charges of a day, in UTC days since 1970, by the model of the machines, the largest first. */
export function revenueByModel(core: Core & HasFleet, day: number): ModelRevenue[] {
  const { fleet } = core;
  const sums = new Map<string | null, ModelRevenue>();
  const rows = core.store.transact((tx) => machinesOfDay(tx, day));
  for (const { machine_id, gpu_micro, disk_micro } of rows)
    add(sums, { gpu_model: fleet.modelOf(machine_id), gpu_micro, disk_micro, machines: 1 });
  const sorted = [...sums.values()].sort((one, other) => totalOf(other) - totalOf(one));
  const named = sorted.filter(({ gpu_model }) => gpu_model !== null).slice(0, MOST_MODELS);
  const rest = new Map<null, ModelRevenue>();
  for (const sum of sorted) if (!named.includes(sum)) add(rest, { ...sum, gpu_model: null });
  return [...named, ...rest.values()];
}

function add<Key extends string | null>(sums: Map<Key, ModelRevenue>, more: ModelRevenue & { gpu_model: Key }): void {
  const sum = sums.get(more.gpu_model);
  if (!sum) return void sums.set(more.gpu_model, { ...more });
  sum.gpu_micro += more.gpu_micro;
  sum.disk_micro += more.disk_micro;
  sum.machines += more.machines;
}

const totalOf = ({ gpu_micro, disk_micro }: ModelRevenue) => gpu_micro + disk_micro;
