import { GPU_USES, gpuUse, type GpuUse } from '../../domain/need.js';
import { oncePer } from '../../store/remembered.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { findGpus } from '../machines/machines.js';
import type { Platform } from '../system/platform.js';

export type GpuCounts = Record<GpuUse, number>;

/** A machine as operators count it. */
export interface FleetMachine {
  /** Its row without `last_seen_at`, which is written all the time. */
  machine: Omit<Row<'machines'>, 'last_seen_at'>;
  /** What its GPUs are used for, by model; the model of its first GPU comes first. */
  models: ReadonlyMap<string, GpuCounts>;
}

/** Returns the machines of a control plane, each read again after a row of it has changed. */
export const fleetOf = oncePer((platform: Platform) => {
  const fleet = new Fleet(platform);
  const { store } = platform;
  const touch = (machineId: string) => fleet.touch(machineId);
  for (const table of ['gpus', 'gpu_claims', 'machines', 'quarantine', 'quarantine_gpus'] as const)
    store.onChange(table, touch);
  store.onUnknownChange(() => fleet.touchAll());
  return fleet;
});

/** Remembers every machine that is not removed, with sums of its GPUs: to count them all takes milliseconds, and no query. */
export class Fleet {
  private readonly known = new Map<string, FleetMachine>();
  private touched = new Set<string>();
  private mustReadAll = true;

  constructor(private readonly platform: Platform) {}

  /** Must be called when something of a machine has changed. */
  touch(machineId: string): void {
    this.touched.add(machineId);
  }

  touchAll(): void {
    this.mustReadAll = true;
  }

  /** Returns the machines that are not removed. */
  machines(): Iterable<FleetMachine> {
    if (this.mustReadAll || this.touched.size > 0) this.platform.store.transact((tx) => this.refresh(tx));
    return this.known.values();
  }

  private refresh(tx: Tx): void {
    const ids = this.mustReadAll ? [...this.known.keys(), ...presentIds(tx)] : this.touched;
    this.touched = new Set();
    this.mustReadAll = false;
    for (const id of new Set(ids)) {
      const machine = tx.get(machineBy({ id }));
      if (machine?.removed_at !== null) this.known.delete(id);
      else this.known.set(id, describe(tx, machine));
    }
  }
}

function presentIds(tx: Tx): string[] {
  const present = query.selectFrom('machines').select('id').where('removed_at', 'is', null);
  return tx.all(present).map(({ id }) => id);
}

const machineBy = compileOnce(({ id }: { id: string }) =>
  query.selectFrom('machines').selectAll().where('id', '=', id),
);

function describe(tx: Tx, { last_seen_at: _, ...machine }: Row<'machines'>): FleetMachine {
  const models = new Map<string, GpuCounts>();
  for (const { model, healthy, instance_id, quarantine_id } of findGpus(tx, machine.id)) {
    const counts = models.get(model) ?? noGpus();
    models.set(model, counts);
    const [isClaimed, isQuarantined] = [instance_id !== null, quarantine_id !== null];
    counts[gpuUse({ isClaimed, isQuarantined, isHealthy: healthy === 1 })] += 1;
  }
  return { machine, models };
}

export function noGpus(): GpuCounts {
  return Object.fromEntries(GPU_USES.map((use) => [use, 0])) as GpuCounts;
}
