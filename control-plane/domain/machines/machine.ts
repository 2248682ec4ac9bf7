import { HOUR_MS } from '../../../shared/time.js';

export interface MachineSize {
  cpuCores: number;
  memoryMb: number;
  gpuCount: number;
}

/** Returns the part of a machine's CPU and memory that a slice gets: in proportion to its GPUs. */
export function sliceResources(machine: MachineSize, numGpus: number): { cpuMillis: number; memoryMb: number } {
  const share = numGpus / Math.max(machine.gpuCount, numGpus, 1);
  return {
    cpuMillis: Math.max(Math.floor(machine.cpuCores * 1000 * share), 100),
    memoryMb: Math.max(Math.floor(machine.memoryMb * share), 64),
  };
}

/** Returns whether version `a` is newer than `b`. Versions are dotted numbers, and each part is compared as a number. */
export function isNewerVersion(a: string, b: string): boolean {
  const [left, right] = [parts(a), parts(b)];
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return false;
}

function parts(version: string): number[] {
  return version.split('.').map((part) => Number.parseInt(part, 10) || 0);
}

export interface Maintenance {
  startsAt: number;
  endsAt: number;
}

const MAINTENANCE_LEAD_MS = HOUR_MS;

/** Returns whether a maintenance window is open or begins within the hour, so that nothing can start on the machine. */
export function isMaintenanceNear(window: Maintenance | null, now: number): boolean {
  return window !== null && now < window.endsAt && window.startsAt - now <= MAINTENANCE_LEAD_MS;
}
