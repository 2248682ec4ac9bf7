import { readFileSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { isPrivateKey, PRIVATE_KEY_GIVEN } from '../../text/ssh-keys.js';
import { usageError } from '../errors/cli-error.js';
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

/** Reads a public key file. Throws a usage error for a file that is none, and for a private key, which must never leave this machine. */
export function readPublicKey(file: string): string {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw usageError(`${file} cannot be read: ${(error as Error).message}`);
  }
  if (isPrivateKey(text))
    throw usageError(`${file} is a private key`, `Give the public one: ${file}.pub. ${PRIVATE_KEY_GIVEN}`);
  return text;
}
