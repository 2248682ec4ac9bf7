import type { Operator } from '../../domain/caller.js';
import type { OperatorAct } from '../../domain/operator-act.js';
import type { Row } from '../../store/schema.js';
import { EVENT_EPOCH } from '../../store/meta.js';
import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { numbersIn, pageOfMatching, type Period } from './log-pages.js';
import { pageOf, type Page, type PageRequest } from './pages.js';
import type { Core } from './platform.js';

export type AuditEntry = Row<'audit_log'> & { actor_email: string };

/** Records an operator's action, in the transaction of that action. `subject` is the id of the object that the action changes. */
export function recordAudit(
  tx: Tx,
  operator: Operator,
  action: OperatorAct,
  subject: string,
  details: Readonly<Record<string, unknown>> = {},
): void {
  const entry = { at: tx.now, actorId: operator.userId, action, subject, details: JSON.stringify(details) };
  tx.run(added(entry));
}

export interface AuditFilter extends Period {
  /** The whole address, in upper or lower case. */
  actor_email?: string;
  action?: OperatorAct;
  subject?: string;
}

const NEWEST_FIRST = { by: { 'audit_log.id': 'desc' }, keyOf: ({ id }: { id: number }) => [id] } as const;

/**
 * Lists the audit log for an operator, newest entry first. With several filters, a page looks at no more entries than
 * {@link pageOfMatching} does, so it can have fewer than its limit although it is not the last. Refuses a cursor of another list and times
 * that contradict each other with VALIDATION_FAILED.
 */
export function listAuditLog(
  core: Core,
  { actor_email, action, subject, ...request }: PageRequest & AuditFilter,
): Page<AuditEntry> {
  return core.store.transact((tx) => {
    const { from, to } = numbersIn(request, {
      newest: () => tx.get(newest({}))?.number ?? 0,
      next: (number) => tx.get(nextOf({ number })),
    });
    const actorId = actor_email === undefined ? undefined : (tx.get(userBy({ email: actor_email }))?.id ?? '');
    const filters = Object.entries({ subject, actor_id: actorId, action }).filter(([, value]) => value !== undefined);
    const [[first, value] = [], ...others] = filters;
    let entries = query
      .selectFrom('audit_log')
      .innerJoin('users', 'users.id', 'audit_log.actor_id')
      .selectAll('audit_log')
      .select('users.email as actor_email')
      .where('audit_log.id', '>=', from)
      .where('audit_log.id', '<', to);
    if (first !== undefined) entries = entries.where(sql.ref(`audit_log.${first}`), '=', value);
    // The + keeps SQLite at the index of the first filter, of which no more is read than a page looks at.
    const matching = (some: typeof entries) =>
      others.reduce((left, [name, wanted]) => left.where(sql`+${sql.ref(`audit_log.${name}`)}`, '=', wanted), some);
    return others.length > 0
      ? pageOfMatching(tx, entries, matching, request, NEWEST_FIRST)
      : pageOf(tx, entries, request, NEWEST_FIRST);
  });
}

const added = compileOnce((entry: Record<'actorId' | 'action' | 'subject' | 'details', string> & { at: number }) => {
  const { at, actorId: actor_id, action, subject, details } = entry;
  return query.insertInto('audit_log').values({ at, actor_id, action, subject, details, epoch: EVENT_EPOCH });
});

const newest = compileOnce(() =>
  query.selectFrom('audit_log').select('id as number').orderBy('id', 'desc').limit(sql.lit(1)),
);

const nextOf = compileOnce(({ number }: { number: number }) =>
  query
    .selectFrom('audit_log')
    .select(['id as number', 'at'])
    .where('id', '>=', number)
    .orderBy('id')
    .limit(sql.lit(1)),
);

const userBy = compileOnce(({ email }: { email: string }) =>
  query.selectFrom('users').select('id').where('email', '=', email),
);
