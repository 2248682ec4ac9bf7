import { hash } from 'node:crypto';

/** Hashes a random token for storage. Tokens have so much entropy that a slow hash would add nothing. */
export function hashToken(token: string): string {
  return hash('sha256', token);
}
