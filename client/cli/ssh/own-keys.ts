import { readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Terminal } from '../terminal/terminal.js';

const FIRST = 'id_ed25519.pub';

/** Returns the public keys in ~/.ssh, the usual one first. */
export function publicKeyFiles({ env }: Terminal): string[] {
  const folder = join(env['HOME'] ?? homedir(), '.ssh');
  try {
    const files = readdirSync(folder).filter((file) => file.endsWith('.pub'));
    return [...files.filter((file) => file === FIRST), ...files.filter((file) => file !== FIRST).sort()].map((file) =>
      join(folder, file),
    );
  } catch {
    return [];
  }
}
