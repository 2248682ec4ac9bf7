import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { SetupError } from '../../shared/coded-error.js';

const PROGRAMS = ['sh', 'dropbear', 'dropbearkey', 'sftp-server', 'scp', 'rsync'];
const FILES = ['init', 'lib/ld.so', ...PROGRAMS.map((name) => `bin/${name}`)];

/** Throws SetupError if the folder of guest tools lacks a file. */
export function requireGuestTools(folder: string): void {
  for (const file of FILES) {
    try {
      accessSync(join(folder, file), constants.R_OK | constants.X_OK);
    } catch {
      throw new SetupError(
        `${join(folder, file)} is missing; run scripts/build-guest-tools and set GPURENT_AGENT_GUEST_TOOLS`,
      );
    }
  }
}
