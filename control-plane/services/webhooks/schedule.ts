import { compileOnce, query, sql, statement } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';

/** Most deliveries of an endpoint that are pending: further events wait in their stream. */
export const MOST_PENDING = 1_000;

/** Sets when the next delivery of an endpoint is due: not while it is paused, and after endpoints that have waited for longer. */
export function reschedule(tx: Tx, endpointId: string): void {
  tx.run(nextAttempt({ endpointId, now: tx.now }));
}

const nextAttempt = compileOnce(({ endpointId, now }: { endpointId: string; now: number }) =>
  statement(sql`
    UPDATE webhook_endpoints SET next_attempt_at = (
      SELECT max(next_attempt_at, ${now}, coalesce(webhook_endpoints.paused_until, 0)) FROM webhook_deliveries
      WHERE endpoint_id = ${endpointId} AND state = 'pending' ORDER BY webhook_deliveries.next_attempt_at LIMIT 1)
    WHERE id = ${endpointId} AND disabled_at IS NULL`),
);

/** Returns how many deliveries of an endpoint are pending. */
export function countPending(tx: Tx, endpointId: string): number {
  return tx.get(pendingOf({ endpointId }))?.count ?? 0;
}

const pendingOf = compileOnce(({ endpointId }: { endpointId: string }) =>
  query
    .selectFrom('webhook_deliveries')
    .select(sql<number>`count(*)`.as('count'))
    .where('endpoint_id', '=', endpointId)
    .where('state', '=', sql.lit('pending')),
);

/** Moves times that are not over by the size of a clock step in milliseconds, so that nothing is due too early or too late. */
export function shiftWebhookTimes(tx: Tx, ms: number): void {
  const shifted = (column: string) => sql<number>`${sql.ref(column)} + ${ms}`;
  const pending = query.updateTable('webhook_deliveries').where('state', '=', sql.lit('pending'));
  tx.run(pending.set({ next_attempt_at: shifted('next_attempt_at') }));
  const times = { next_attempt_at: shifted('next_attempt_at'), paused_until: shifted('paused_until') };
  const since = { failing_since: shifted('failing_since') };
  tx.run(
    query
      .updateTable('webhook_endpoints')
      .set({ ...times, ...since })
      .where('disabled_at', 'is', null),
  );
}
