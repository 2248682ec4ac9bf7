import type { Operator } from '../../domain/caller.js';
import type { Row } from '../../store/schema.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { pageOf, type Page, type PageRequest } from './pages.js';
import type { Platform } from './platform.js';

export type AuditEntry = Row<'audit_log'> & { actor_email: string };

/** Records an operator's action, in the transaction of that action. `subject` is the id of the object that the action changes. */
export function recordAudit(
  tx: Tx,
  operator: Operator,
  action: string,
  subject: string,
  details: Readonly<Record<string, unknown>> = {},
): void {
  const entry = { at: tx.now, actor_id: operator.userId, action, subject, details: JSON.stringify(details) };
  tx.run(query.insertInto('audit_log').values(entry));
}

/** Lists the audit log for an operator, newest entry first. */
export function listAuditLog(platform: Platform, request: PageRequest): Page<AuditEntry> {
  return platform.store.transact((tx) => {
    const entries = query
      .selectFrom('audit_log')
      .innerJoin('users', 'users.id', 'audit_log.actor_id')
      .selectAll('audit_log')
      .select('users.email as actor_email');
    return pageOf(tx, entries, request, { by: { 'audit_log.id': 'desc' }, keyOf: ({ id }) => [id] });
  });
}
