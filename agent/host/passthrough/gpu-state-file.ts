import { readFile, rename, writeFile } from 'node:fs/promises';
import { messageOf } from '../../../shared/coded-error.js';
import type { GpuInventory } from '../gpus/driver.js';

/** Which GPU is in which slot: the driver does not know one that is away. */
export class GpuStateFile {
  private noted: GpuInventory | undefined;

  constructor(
    private readonly file: string,
    /** Says why they cannot be written; null: somebody else writes them. */
    private readonly warn: ((message: string) => void) | null,
  ) {}

  /** Undefined where nothing has been noted yet. */
  async read(): Promise<GpuInventory | undefined> {
    this.noted ??= await readFile(this.file, 'utf8').then(
      (text) => JSON.parse(text) as GpuInventory,
      () => undefined,
    );
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
      this.warn(`which GPU is in which slot cannot be noted: ${messageOf(error)}`);
    }
  }
}

/** What stays the same. */
function textOf({ gpus, ...versions }: GpuInventory): string {
  const kept = gpus.map((gpu) => ({ ...gpu, healthy: true, reason: '', processes: [] }));
  return JSON.stringify({ ...versions, gpus: kept });
}
