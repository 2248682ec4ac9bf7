import { hostEvent, type InstanceErrorCode, type PlatformEvent } from '../../domain/instance-codes.js';
import { compileOnce, insertRow, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';

const KEPT_EVENTS = 1_000;

/** Adds an event to the timeline that the renter reads. The newest 1,000 events of an instance are kept. */
export function recordEvent(
  tx: Tx,
  instanceId: string,
  kind: PlatformEvent | InstanceErrorCode,
  message: string,
): void {
  insertEvent(tx, instanceId, kind, message);
}

/**
 * Adds an event that a host reports. If the last event has the same kind, it is replaced, so that a long step stays one event. A
 * kind that is not for hosts becomes another one ({@link hostEvent}) and never replaces an event.
 */
export function recordHostEvent(tx: Tx, instanceId: string, told: string, message: string): void {
  const kind = hostEvent(told);
  const events = query.selectFrom('instance_events').selectAll().where('instance_id', '=', instanceId);
  const last = tx.get(events.orderBy('id', 'desc').limit(1));
  if (last?.kind !== kind || kind !== told) return insertEvent(tx, instanceId, kind, message);
  tx.run(query.updateTable('instance_events').set({ at: tx.now, message }).where('id', '=', last.id));
}

function insertEvent(tx: Tx, instanceId: string, kind: string, message: string): void {
  tx.run(insertRow('instance_events', { instance_id: instanceId, at: tx.now, kind, message }));
  const last = tx.get(firstTooMany({ instanceId }));
  if (last)
    tx.run(query.deleteFrom('instance_events').where('instance_id', '=', instanceId).where('id', '<=', last.id));
}

const firstTooMany = compileOnce(({ instanceId }: { instanceId: string }) =>
  query
    .selectFrom('instance_events')
    .select('id')
    .where('instance_id', '=', instanceId)
    .orderBy('id', 'desc')
    .offset(sql.lit(KEPT_EVENTS))
    .limit(sql.lit(1)),
);
