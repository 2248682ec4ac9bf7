import type { MeasurementReport } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import type { HasHostBudgets } from '../events/host-budget.js';
import { followIdle } from '../billing/limits/idle-stop.js';
import { validateMeasurementReport } from '../machines/message-validation.js';
import type { HasMeasurements } from '../measurements/memory.js';
import { recordMeasurements } from '../measurements/record.js';
import type { Platform } from '../system/platform.js';

/**
 * Takes what a host has measured of its instances, and stops those that were idle for too long. Drops reports of a host that sends too
 * many. Refuses with VALIDATION_FAILED.
 */
export function receiveMeasurements(
  platform: Platform & HasMeasurements & HasHostBudgets,
  machineId: string,
  report: MeasurementReport,
): void {
  validateMeasurementReport(report);
  if (!platform.measurements.admits(machineId)) return;
  platform.store.transact((tx) => {
    for (const { instance, minutes } of recordMeasurements(platform, tx, machineId, report))
      followIdle(platform, tx, instance, minutes);
  });
}
