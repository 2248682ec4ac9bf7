import type { Measurement, MeasurementReport } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { fromMeasurement } from '../../../shared/measurement.js';
import { diskStepOf, isHigherStep } from '../../domain/disk-filling.js';
import type { TimedUse } from '../../domain/measurement.js';
import { compileOnce, query, sql, updateRows } from '../../store/sql.js';
import type { Row } from '../../store/schema.js';
import type { Tx } from '../../store/store.js';
import { mayTell } from '../events/host-budget.js';
import { recordInstanceEvent } from '../events/record.js';
import { validateMeasurementReport } from '../machines/message-validation.js';
import type { Platform } from '../system/platform.js';
import { memoryOf } from './memory.js';

const GB = 1e9;

type Measured = Pick<Row<'instances'>, 'id' | 'num_gpus' | 'disk_gb' | 'disk_told_percent'>;

/**
 * Takes what a host has measured of its instances, and tells renters of disks that are nearly full. Instances of other machines and
 * unknown ones are left out. It writes nothing but such events: a worker writes the rest later. Nothing here has to do
 * with money. Refuses with VALIDATION_FAILED.
 */
export function recordMeasurements(platform: Platform, machineId: string, report: MeasurementReport): void {
  validateMeasurementReport(report);
  const memory = memoryOf(platform);
  if (!memory.admits(machineId)) return;
  const minutesOf = new Map(report.instances.map(({ instanceId, minutes }) => [instanceId, minutes]));
  platform.store.transact((tx) => {
    const ids = JSON.stringify([...minutesOf.keys()]);
    for (const instance of tx.all(measuredInstances({ machineId, ids }))) {
      const minutes = minutesOf.get(instance.id) ?? [];
      const uses = minutes.map((minute) => timedUse(minute, tx.now, instance.num_gpus));
      if (uses.length === 0) continue;
      memory.add(instance.id, uses, tx.now);
      tellFillingDisk(platform, tx, instance, uses.at(-1));
    }
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
    .select(['id', 'num_gpus', 'disk_gb', 'disk_told_percent'])
    .where('id', 'in', sql<string>`(SELECT value FROM json_each(${ids}))`)
    // The unary plus keeps SQLite from searching every instance that the machine ever had.
    .where(sql`+machine_id`, '=', machineId)
    .where(sql`+status`, '<>', sql.lit('destroyed')),
);

/** Tells the renter once that a disk is 90 or 98 percent full, and again after it was 5 percent below that. */
function tellFillingDisk(platform: Platform, tx: Tx, instance: Measured, newest: TimedUse | undefined): void {
  const used = newest?.use.diskUsedBytes ?? null;
  if (used === null || instance.disk_gb === 0) return;
  const percent = (100 * used) / (instance.disk_gb * GB);
  const told = instance.disk_told_percent;
  const step = diskStepOf(percent, told);
  if (step === told) return;
  if (isHigherStep(step, told)) {
    if (!mayTell(platform, instance.id)) return;
    const message = `${step} percent of the disk of ${instance.disk_gb} GB are used; delete files, because writes fail once it is full`;
    recordInstanceEvent(tx, instance.id, 'instance.disk_filling', { kind: 'disk_filling', message }, { percent: step });
  }
  tx.run(updateRows('instances', { disk_told_percent: step }, { id: instance.id }));
}
