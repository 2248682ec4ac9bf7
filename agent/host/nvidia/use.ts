import { MIB } from '../../../shared/bytes.js';
import { GPU_UUID } from '../../../shared/gpus/gpu-uuid.js';
import type { GpuReading } from '../gpus/driver.js';

/** What `nvidia-smi --query-gpu` is asked for: names that all generations of drivers know. */
export const USE_QUERY = ['uuid', 'utilization.gpu', 'memory.used', 'memory.total', 'power.draw', 'temperature.gpu'];

/** Parses the CSV of {@link USE_QUERY}, without header and units. A GPU of which a value is not known has null there. */
export function parseUse(output: string): ReadonlyMap<string, GpuReading> {
  const lines = output.split('\n').map((line) => line.split(',').map((field) => field.trim()));
  return new Map(
    lines.flatMap(([uuid = '', use, memoryUsed, memoryTotal, power, temperature]) => {
      if (!GPU_UUID.test(uuid)) return [];
      const [usedMib, totalMib] = [numberOf(memoryUsed), numberOf(memoryTotal)];
      const percent = numberOf(use);
      return [
        [
          uuid,
          {
            usePercent: percent === null ? null : Math.min(percent, 100),
            memoryUsedBytes: usedMib === null ? null : usedMib * MIB,
            memoryTotalBytes: totalMib === null ? null : totalMib * MIB,
            powerWatts: numberOf(power),
            temperatureCelsius: numberOf(temperature),
          },
        ] as const,
      ];
    }),
  );
}

/** Parses "87" or "63.51" into a whole number; null for "[N/A]", "[Not Supported]" and "[Unknown Error]". */
function numberOf(text = ''): number | null {
  return /^\d{1,9}(\.\d+)?$/.test(text) ? Math.round(Number(text)) : null;
}
