import type { Compilable } from 'kysely';
import { Refusal } from '../../domain/refusal.js';
import type { Tx } from '../../store/store.js';

/** Limits per user or organization: more than anybody needs, and too few to crowd out others. */
export const LIMITS = {
  apiKeys: 200,
  identities: 20,
  invites: 100,
  issuers: 100,
  organizations: 20,
  publicTemplates: 20,
  secondFactors: 10,
  sessions: 100,
  sshKeys: 100,
  templates: 200,
  webhookEndpoints: 10,
} as const;

/** Refuses with LIMIT_REACHED when `existing` has as many rows as the limit allows. */
export function checkLimit(tx: Tx, what: keyof typeof LIMITS, existing: Compilable<{ id: string }>): void {
  const limit = LIMITS[what];
  if (tx.all(existing).length < limit) return;
  throw new Refusal('LIMIT_REACHED', `the limit of ${limit} is reached; remove one first`, { limit });
}
