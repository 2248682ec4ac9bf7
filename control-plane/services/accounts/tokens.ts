import { createHash } from 'node:crypto';

/** What is stored of a random secret. It has entropy enough that a slow hash would add nothing. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}
