/** The columns asked of `nvidia-smi --query-gpu`, in order. */
export const GPU_COLUMNS = [
  'uuid',
  'index',
  'name',
  'memory.total',
  'driver_version',
  'ecc.errors.uncorrected.volatile.total',
] as const;

export interface NvidiaGpu {
  uuid: string;
  index: number;
  model: string;
  memoryMb: number;
  driverVersion: string;
  /** Null where the card counts none. */
  uncorrectedEccErrors: number | null;
}

/** Reads `nvidia-smi --query-gpu=... --format=csv,noheader,nounits`. Throws on a line that it does not understand. */
export function parseGpuList(output: string): NvidiaGpu[] {
  return output
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [uuid = '', index = '', model = '', memory = '', driverVersion = '', ecc = ''] = line
        .split(',')
        .map((part) => part.trim());
      if (!/^GPU-[0-9a-f-]{36}$/.test(uuid) || !/^\d+$/.test(index) || !/^\d+$/.test(memory)) {
        throw new Error(`nvidia-smi printed a line that is not understood: ${line}`);
      }
      return {
        uuid,
        index: Number(index),
        model,
        memoryMb: Number(memory),
        driverVersion,
        uncorrectedEccErrors: /^\d+$/.test(ecc) ? Number(ecc) : null,
      };
    });
}

/** The CUDA version in the heading that plain `nvidia-smi` prints; empty where there is none. */
export function parseCudaVersion(output: string): string {
  return /CUDA (?:UMD )?Version\s*:\s*(\d+(?:\.\d+)*)/.exec(output)?.[1] ?? '';
}
