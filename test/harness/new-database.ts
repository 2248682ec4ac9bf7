import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Store } from '../../control-plane/store/store.js';
import { ManualClock } from './manual-clock.js';
import { memoryFolder } from './memory-folder.js';

let made: Buffer | undefined;

/** Returns the file of an empty database of this release. It is made once: its migrations take longer than most tests. */
export function newDatabase(): Buffer {
  if (!made) {
    const folder = memoryFolder('gpurent-new-');
    const file = join(folder, 'gpurent.db');
    new Store(file, new ManualClock()).close();
    made = readFileSync(file);
    rmSync(folder, { recursive: true });
  }
  return made;
}
