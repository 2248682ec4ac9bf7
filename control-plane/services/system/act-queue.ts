import { EVENT_EPOCH } from '../../store/meta.js';
import { compileOnce, query, sql, statement } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';

/** Most acts that wait for an output of audit lines: an output that delivers none for so long loses the oldest, and says so. */
export const MOST_QUEUED_ACTS = 100_000;

/**
 * Queues an act of an organization for the outputs of audit lines, in the transaction of the act. Acts have a number in their
 * organization alone: the queue gives them one order. While no output is on, nothing is queued.
 */
export function queueAct(tx: Tx, organizationId: string, number: number): void {
  const queued = tx.get(added({ organizationId, number, at: tx.now }));
  if (queued && queued.id > MOST_QUEUED_ACTS) tx.run(removedTo({ id: queued.id - MOST_QUEUED_ACTS }));
}

const added = compileOnce(({ organizationId, number, at }: { organizationId: string; number: number; at: number }) =>
  statement<{ id: number }>(sql`
    INSERT INTO queued_acts (epoch, at, organization_id, number)
    SELECT ${EVENT_EPOCH}, ${at}, ${organizationId}, ${number}
    WHERE EXISTS (SELECT 1 FROM audit_cursors WHERE output IN ('stdout', 'webhook') AND source = 'organization')
    RETURNING id`),
);

const removedTo = compileOnce(({ id }: { id: number }) => query.deleteFrom('queued_acts').where('id', '<=', id));
