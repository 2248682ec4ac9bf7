import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** A GPU in the list of the kernel's driver, which also has those that nvidia-smi cannot read. */
export interface ListedGpu {
  /** Empty: the driver has not read it. */
  uuid: string;
  model: string;
  /** For example `0000:3b:00`. */
  pciAddress: string;
}

const UUID = /^GPU UUID:\s*(GPU-[0-9a-f-]{36})$/m;
const MODEL = /^Model:\s*(\S.*)$/m;
const MOST = 64;

/** Returns the GPUs that the kernel's driver lists; none if it is not loaded. */
export async function kernelGpus(proc = '/proc'): Promise<ListedGpu[]> {
  const folder = join(proc, 'driver/nvidia/gpus');
  const addresses = await readdir(folder).catch(() => []);
  return Promise.all(
    addresses
      .sort()
      .slice(0, MOST)
      .map(async (address) => {
        const text = await readFile(join(folder, address, 'information'), 'utf8').catch(() => '');
        const pciAddress = address.toLowerCase().replace(/\.[0-9a-f]$/, '');
        return { uuid: UUID.exec(text)?.[1] ?? '', model: MODEL.exec(text)?.[1]?.trim() ?? '', pciAddress };
      }),
  );
}
