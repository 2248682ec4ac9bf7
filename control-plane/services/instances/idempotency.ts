import { createHash } from 'node:crypto';
import { DAY_MS } from '../../../shared/time.js';
import { Refusal } from '../../domain/refusal.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { findInstance, type Instance } from './queries.js';

/** How long a key is remembered with its request. */
export const IDEMPOTENCY_MS = DAY_MS;

/** An idempotency key with the request that it was sent with. */
export interface Idempotency {
  organizationId: string;
  key: string;
  /** The hash of the request with its fields sorted. */
  requestHash: string;
  /** The hash with the fields as sent, which release 0.1.0 stored. */
  orderedHash: string;
}

export function idempotencyOf(organizationId: string, key: string, request: object): Idempotency {
  return { organizationId, key, requestHash: hashOf(sorted(request)), orderedHash: hashOf(request) };
}

function hashOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}

/** Returns a copy with the fields of each object sorted by name. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(fields.map(([name, field]) => [name, sorted(field)]));
}

/**
 * Returns the instance that this key deployed within 24 hours, or undefined. Refuses another request with
 * IDEMPOTENCY_KEY_REUSED.
 */
export function findReplayed(tx: Tx, request: Idempotency): Instance | undefined {
  const { organizationId, key, requestHash, orderedHash } = request;
  const known = tx.get(
    query
      .selectFrom('idempotency_keys')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .where('key', '=', key)
      .where('created_at', '>', tx.now - IDEMPOTENCY_MS),
  );
  if (!known) return undefined;
  if (![requestHash, orderedHash].includes(known.request_hash)) {
    throw new Refusal('IDEMPOTENCY_KEY_REUSED', 'this Idempotency-Key was sent with another request; use a new one');
  }
  return findInstance(tx, known.instance_id);
}

export function remember(tx: Tx, { organizationId, key, requestHash }: Idempotency, instanceId: string): void {
  const values = { request_hash: requestHash, instance_id: instanceId, created_at: tx.now };
  tx.run(
    query
      .insertInto('idempotency_keys')
      .values({ organization_id: organizationId, key, ...values })
      .onConflict((conflict) => conflict.columns(['organization_id', 'key']).doUpdateSet(values)),
  );
}
