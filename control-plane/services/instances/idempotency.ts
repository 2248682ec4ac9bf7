import { createHash } from 'node:crypto';
import { DAY_MS } from '../../../shared/time.js';
import { Refusal } from '../../domain/refusal.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { findInstance, type Instance } from './queries.js';

/** For so long a key stands for its request. */
export const IDEMPOTENCY_MS = DAY_MS;

/** What a client sent to make one request, and no other, of all its repetitions. */
export interface Idempotency {
  organizationId: string;
  key: string;
  /** Whatever order its fields come in. */
  requestHash: string;
  /** In their order: what release 0.1.0 has kept. */
  orderedHash: string;
}

export function idempotencyOf(organizationId: string, key: string, request: object): Idempotency {
  return { organizationId, key, requestHash: hashOf(sorted(request)), orderedHash: hashOf(request) };
}

function hashOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}

/** The same with the fields of each object in one order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(fields.map(([name, field]) => [name, sorted(field)]));
}

/** The instance that the key has deployed within a day. Refuses with IDEMPOTENCY_KEY_REUSED when the request is another. */
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
    throw new Refusal('IDEMPOTENCY_KEY_REUSED', 'this Idempotency-Key stands for another request; use a new one');
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
