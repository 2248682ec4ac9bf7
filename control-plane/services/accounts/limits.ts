import type { Compilable } from 'kysely';
import { Refusal } from '../../domain/refusal.js';
import type { Tx } from '../../store/store.js';

/** How many of a thing one user or organization may have: enough for anybody, and too few to bury others under. */
export const LIMITS = {
  apiKeys: 200,
  invites: 100,
  organizations: 20,
  publicTemplates: 20,
  sshKeys: 100,
  templates: 200,
} as const;

/** Refuses with LIMIT_REACHED when `existing` are as many as there may be. */
export function checkLimit(tx: Tx, what: keyof typeof LIMITS, existing: Compilable<{ id: string }>): void {
  const limit = LIMITS[what];
  if (tx.all(existing).length < limit) return;
  throw new Refusal('LIMIT_REACHED', `you have ${limit} already; remove one first`, { limit });
}
