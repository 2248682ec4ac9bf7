import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const IN_MEMORY = '/dev/shm';

/** Makes a new folder, in memory where this machine has a place for that: a store there is a real file whose syncs cost nothing. */
export function memoryFolder(prefix: string): string {
  return mkdtempSync(join(existsSync(IN_MEMORY) ? IN_MEMORY : tmpdir(), prefix));
}
