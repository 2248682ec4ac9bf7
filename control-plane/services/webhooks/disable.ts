import type { DisabledReason } from '../../domain/webhook.js';
import type { Row } from '../../store/schema.js';
import { query, sql, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordEvent } from '../events/record.js';

/** Switches an endpoint off: its pending deliveries have failed, and the organization gets an event. */
export function disableEndpoint(
  tx: Tx,
  { id, organization_id }: Pick<Row<'webhook_endpoints'>, 'id' | 'organization_id'>,
  reason: DisabledReason,
): void {
  const off = { disabled_at: tx.now, disabled_reason: reason, next_attempt_at: null, paused_until: null };
  tx.run(updateRows('webhook_endpoints', off, { id }));
  tx.run(
    query
      .updateTable('webhook_deliveries')
      .set({ state: sql.lit('failed'), last_error: 'disabled', finished_at: tx.now })
      .where('endpoint_id', '=', id)
      .where('state', '=', sql.lit('pending')),
  );
  recordEvent(tx, organization_id, 'webhook.disabled', `webhook-endpoints/${id}`, { webhook_endpoint_id: id, reason });
}
