import { GPU_USES, gpuUse, type GpuUse } from '../../domain/machines/gpu-use.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Core } from '../system/platform.js';

export type GpuCounts = Record<GpuUse, number>;

/** Columns that seldom change: all of a large fleet are read at the start. */
const COLUMNS = [
  'id',
  'name',
  'lost_at',
  'removed_at',
  'cordoned_at',
  'disk_quota',
  'quota_waived_at',
  'maintenance_starts_at',
  'maintenance_ends_at',
] as const;

/** A machine as operators count it. */
export interface FleetMachine {
  machine: Pick<Row<'machines'>, (typeof COLUMNS)[number]>;
  /** What its GPUs are used for, by model; the model of its first GPU comes first. */
  models: ReadonlyMap<string, GpuCounts>;
  /** How many of its GPUs are not healthy, whatever they are used for. */
  unhealthy: number;
  /** How many of them the driver of the host no longer lists. */
  missing: number;
  /** How many of them belong to another machine. */
  disputed: number;
}

export interface HasFleet {
  fleet: Fleet;
}

/** Makes the fleet of a control plane, in which each machine is read again after a row of it has changed. */
export function makeFleet(core: Core): Fleet {
  const fleet = new Fleet(core);
  const { store } = core;
  const touch = (machineId: string) => fleet.touch(machineId);
  for (const table of ['gpus', 'gpu_claims', 'machines', 'quarantine', 'quarantine_gpus'] as const)
    store.onChange(table, touch);
  store.onUnknownChange(() => fleet.touchAll());
  return fleet;
}

/** Remembers every machine that is not removed, with sums of its GPUs: to count them all takes milliseconds, and no query. */
export class Fleet {
  private readonly known = new Map<string, FleetMachine>();
  private touched = new Set<string>();
  private mustReadAll = true;

  constructor(private readonly core: Core) {}

  /** Must be called when something of a machine has changed. */
  touch(machineId: string): void {
    this.touched.add(machineId);
  }

  touchAll(): void {
    this.mustReadAll = true;
  }

  /** Returns the machines that are not removed. */
  machines(): Iterable<FleetMachine> {
    return this.present().values();
  }

  /** Returns the model of the first GPU of a machine; null: it has none, or is removed. */
  modelOf(machineId: string): string | null {
    return this.present().get(machineId)?.models.keys().next().value ?? null;
  }

  private present(): ReadonlyMap<string, FleetMachine> {
    if (this.mustReadAll || this.touched.size > 0) this.core.store.transact((tx) => this.refresh(tx));
    return this.known;
  }

  private refresh(tx: Tx): void {
    const ids = this.mustReadAll ? [...this.known.keys(), ...presentIds(tx)] : this.touched;
    for (const id of new Set(ids)) {
      const machine = tx.get(machineBy({ id }));
      if (machine?.removed_at !== null) this.known.delete(id);
      else this.known.set(id, describe(tx, machine));
    }
    // Last, so that all of it is read again if the database could not be read now.
    this.touched = new Set();
    this.mustReadAll = false;
  }
}

function presentIds(tx: Tx): string[] {
  const present = query.selectFrom('machines').select('id').where('removed_at', 'is', null);
  return tx.all(present).map(({ id }) => id);
}

const machineBy = compileOnce(({ id }: { id: string }) =>
  query.selectFrom('machines').select(COLUMNS).where('id', '=', id),
);

const IS_QUARANTINED = sql<0 | 1>`EXISTS (
  SELECT 1 FROM quarantine JOIN quarantine_gpus ON quarantine_gpus.quarantine_id = quarantine.id
  WHERE quarantine.machine_id = gpus.machine_id AND quarantine_gpus.gpu_uuid = gpus.uuid
)`;

const gpusOf = compileOnce(({ machineId }: { machineId: string }) =>
  query
    .selectFrom('gpus')
    .leftJoin('gpu_claims', (join) =>
      join.onRef('gpu_claims.machine_id', '=', 'gpus.machine_id').onRef('gpu_claims.gpu_uuid', '=', 'gpus.uuid'),
    )
    .select(['gpus.model', 'gpus.healthy', 'gpus.missing', 'gpus.owned', 'gpu_claims.instance_id'])
    .select(IS_QUARANTINED.as('quarantined'))
    .where('gpus.machine_id', '=', machineId)
    .where('gpus.present', '=', sql.lit(1))
    .orderBy('gpus.position')
    .orderBy('gpus.uuid'),
);

function describe(tx: Tx, machine: FleetMachine['machine']): FleetMachine {
  const models = new Map<string, GpuCounts>();
  let [unhealthy, missing, disputed] = [0, 0, 0];
  for (const gpu of tx.all(gpusOf({ machineId: machine.id }))) {
    const { model, healthy, owned, instance_id, quarantined } = gpu;
    const counts = models.get(model) ?? noGpus();
    models.set(model, counts);
    const [isClaimed, isQuarantined, isHealthy] = [instance_id !== null, quarantined === 1, healthy === 1];
    counts[gpuUse({ isClaimed, isQuarantined, isHealthy: isHealthy && owned === 1 })] += 1;
    if (!isHealthy) unhealthy += 1;
    if (owned === 0) disputed += 1;
    missing += gpu.missing;
  }
  return { machine, models, unhealthy, missing, disputed };
}

export function noGpus(): GpuCounts {
  return Object.fromEntries(GPU_USES.map((use) => [use, 0])) as GpuCounts;
}
