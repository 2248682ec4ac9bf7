import { readFile, rename, writeFile } from 'node:fs/promises';
import { messageOf } from '../../../shared/coded-error.js';
import type { Gpu, GpuInventory } from '../gpus/driver.js';

/** Remembers which GPU is in which slot, because the driver does not know a GPU that is in a virtual machine. */
export class GpuStateFile {
  private noted: GpuInventory | undefined;

  constructor(
    private readonly file: string,
    /** Logs why the file cannot be written; null: this process only reads it. */
    private readonly warn: ((message: string) => void) | null,
  ) {}

  /** Returns the last inventory written; undefined if there is none. */
  async read(): Promise<GpuInventory | undefined> {
    this.noted ??= await readFile(this.file, 'utf8').then(inventoryIn, () => undefined);
    return this.noted;
  }

  async write(inventory: GpuInventory): Promise<void> {
    const text = textOf(inventory);
    if (this.noted && textOf(this.noted) === text) return;
    this.noted = JSON.parse(text) as GpuInventory;
    if (!this.warn) return;
    try {
      await writeFile(`${this.file}.new`, text, { mode: 0o600 });
      await rename(`${this.file}.new`, this.file);
    } catch (error) {
      this.warn(`the GPU state file ${this.file} cannot be written: ${messageOf(error)}`);
    }
  }
}

/** Serializes the fields that do not change with the health of a GPU. */
function textOf({ gpus, ...versions }: GpuInventory): string {
  const kept = gpus.map((gpu) => ({ ...gpu, healthy: true, missing: false, reason: '', processes: [] }));
  return JSON.stringify({ ...versions, gpus: kept });
}

/** Returns the inventory in a text; undefined if it is none, as after a disk was full. */
function inventoryIn(text: string): GpuInventory | undefined {
  try {
    const { gpus, driverVersion, cudaVersion } = JSON.parse(text) as Partial<Record<keyof GpuInventory, unknown>>;
    if (!Array.isArray(gpus) || !gpus.every(isGpu)) return undefined;
    if (typeof driverVersion !== 'string' || typeof cudaVersion !== 'string') return undefined;
    return { gpus, driverVersion, cudaVersion };
  } catch {
    return undefined;
  }
}

function isGpu(value: unknown): value is Gpu {
  const { uuid, model, pciAddress, memoryMb, processes } = (value ?? {}) as Partial<Record<keyof Gpu, unknown>>;
  const areTexts = [uuid, model, pciAddress].every((text) => typeof text === 'string');
  return areTexts && typeof memoryMb === 'number' && Array.isArray(processes);
}
