import type { Measurement, MeasurementReport } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { fromMeasurement } from '../../../shared/measurement.js';
import { diskStepOf, isHigherStep } from '../../domain/instances/disk-filling.js';
import type { TimedUse } from '../../domain/instances/measurement.js';
import { compileOnce, query, sql, updateRows } from '../../store/sql.js';
import type { Row } from '../../store/schema.js';
import type { Tx } from '../../store/store.js';
import type { HasHostBudgets } from '../events/host-budget.js';
import { recordInstanceEvent } from '../events/record.js';
import type { HasMeasurements } from './memory.js';

const GB = 1e9;

/** What of an instance is needed to judge what it uses. */
const JUDGED = [
  'id',
  'num_gpus',
  'disk_gb',
  'disk_told_percent',
  'status',
  'status_changed_at',
  'idle_stop_minutes',
  'idle_from',
  'idle_to',
  'idle_stops_at',
] as const;
export type MeasuredInstance = Pick<Row<'instances'>, (typeof JUDGED)[number]>;

/** What a host has measured of an instance. */
export interface MeasuredUse {
  instance: MeasuredInstance;
  minutes: readonly TimedUse[];
}

/**
 * Takes what a host has measured of its instances, and tells renters of disks that are nearly full. Returns it by instance, without those
 * of other machines and unknown ones. It writes nothing but such events: a worker writes the rest later. Charges never depend on it.
 */
export function recordMeasurements(
  core: HasMeasurements & HasHostBudgets,
  tx: Tx,
  machineId: string,
  { instances }: MeasurementReport,
): MeasuredUse[] {
  const minutesOf = new Map(instances.map(({ instanceId, minutes }) => [instanceId, minutes]));
  const measured = tx.all(measuredInstances({ machineId, ids: JSON.stringify([...minutesOf.keys()]) }));
  return measured.flatMap((instance) => {
    const minutes = (minutesOf.get(instance.id) ?? []).map((minute) => timedUse(minute, tx.now, instance.num_gpus));
    if (minutes.length === 0) return [];
    core.measurements.add(instance.id, minutes, tx.now);
    tellFillingDisk(core, tx, instance, minutes.at(-1));
    return [{ instance, minutes }];
  });
}

/** Returns what a message says, with the time of this control plane's clock: never a later time than now. */
export function timedUse(measurement: Measurement, now: number, gpus: number): TimedUse {
  const use = fromMeasurement(measurement);
  return { at: Math.round(now - measurement.endedMsAgo), use: use.gpus.length === gpus ? use : { ...use, gpus: [] } };
}

/** Selects the instances of a machine that a JSON array of ids names, without destroyed ones. */
const measuredInstances = compileOnce(({ machineId, ids }: { machineId: string; ids: string }) =>
  query
    .selectFrom('instances')
    .select(JUDGED)
    .where('id', 'in', sql<string>`(SELECT value FROM json_each(${ids}))`)
    // The unary plus keeps SQLite from searching every instance that the machine ever had.
    .where(sql`+machine_id`, '=', machineId)
    .where(sql`+status`, '<>', sql.lit('destroyed')),
);

/** Tells the renter once that a disk is 90 or 98 percent full, and again after it was 5 percent below that. */
function tellFillingDisk(
  { hostBudgets }: HasHostBudgets,
  tx: Tx,
  instance: MeasuredInstance,
  newest: TimedUse | undefined,
): void {
  const used = newest?.use.diskUsedBytes ?? null;
  if (used === null || instance.disk_gb === 0) return;
  const percent = (100 * used) / (instance.disk_gb * GB);
  const told = instance.disk_told_percent;
  const step = diskStepOf(percent, told);
  if (step === told) return;
  if (isHigherStep(step, told)) {
    if (!hostBudgets.mayTell(instance.id)) return;
    const message = `${step} percent of the disk of ${instance.disk_gb} GB are used; delete files, because writes fail once it is full`;
    recordInstanceEvent(tx, instance.id, 'instance.disk_filling', { kind: 'disk_filling', message }, { percent: step });
  }
  tx.run(updateRows('instances', { disk_told_percent: step }, { id: instance.id }));
}
