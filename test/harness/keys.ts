import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A public key as ssh-keygen makes it. */
export function makePublicKey(...options: string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'gpurent-key-'));
  try {
    execFileSync('ssh-keygen', ['-q', '-N', '', '-C', 'test', '-f', join(folder, 'key'), ...options]);
    return readFileSync(join(folder, 'key.pub'), 'utf8');
  } finally {
    rmSync(folder, { recursive: true });
  }
}
