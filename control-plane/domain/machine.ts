import { HOUR_MS } from '../../shared/time.js';

export interface MachineSize {
  cpuCores: number;
  memoryMb: number;
  gpuCount: number;
}

/** A slice's part of its machine's CPU and memory: in proportion to its GPUs. */
export function sliceResources(machine: MachineSize, numGpus: number): { cpuMillis: number; memoryMb: number } {
  const share = numGpus / Math.max(machine.gpuCount, numGpus, 1);
  return {
    cpuMillis: Math.max(Math.floor(machine.cpuCores * 1000 * share), 100),
    memoryMb: Math.max(Math.floor(machine.memoryMb * share), 64),
  };
}

/** Whether version `a` is newer than `b`: dotted numbers, compared as numbers. */
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

/** Whether a maintenance window is on, or begins within the hour: too soon to start on. */
export function isMaintenanceNear(window: Maintenance | null, now: number): boolean {
  return window !== null && now < window.endsAt && window.startsAt - now <= MAINTENANCE_LEAD_MS;
}
