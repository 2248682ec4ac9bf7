import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A public key as ssh-keygen makes it. */
export const makePublicKey = (...options: string[]): string => makeKeyPair(...options).publicKey;

/** A key as ssh-keygen makes it, of no use anywhere. */
export function makeKeyPair(...options: string[]): { publicKey: string; privateKey: string } {
  const folder = mkdtempSync(join(tmpdir(), 'gpurent-key-'));
  try {
    execFileSync('ssh-keygen', ['-q', '-N', '', '-C', 'test', '-f', join(folder, 'key'), ...options]);
    const [publicKey, privateKey] = [
      readFileSync(join(folder, 'key.pub'), 'utf8'),
      readFileSync(join(folder, 'key'), 'utf8'),
    ];
    return { publicKey, privateKey };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
