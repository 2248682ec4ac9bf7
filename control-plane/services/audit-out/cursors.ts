import {
  AUDIT_OUTPUTS,
  AUDIT_SOURCES,
  oldestLines,
  type AuditOutputName,
  type AuditSource,
  type PlacedLine,
} from '../../domain/audit-line.js';
import { compileOnce, insertRow, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { LINES_A_RUN, SOURCES, linesAfter } from './sources.js';

/** Most queued acts that one run deletes: more than it can deliver. */
const MOST_DELETED = 500;

/**
 * Gives each output that is on and has no cursor one at the newest record of every source, so that it does not begin with all of history;
 * those that are off lose theirs.
 */
export function beginCursors(tx: Tx, on: readonly AuditOutputName[]): void {
  const before = tx.all(allCursors({}));
  for (const output of AUDIT_OUTPUTS) {
    const own = before.filter((cursor) => cursor.output === output);
    if (on.includes(output))
      for (const source of AUDIT_SOURCES.filter((name) => own.every((cursor) => cursor.source !== name)))
        tx.run(insertRow('audit_cursors', { output, source, number: SOURCES[source].newest(tx) }));
    else if (own.length > 0) tx.run(query.deleteFrom('audit_cursors').where('output', '=', output));
  }
}

/** Returns the next lines of an output, at most {@link LINES_A_RUN}: the oldest of all sources, those of one source in their order. */
export function nextLines(tx: Tx, output: AuditOutputName): PlacedLine[] {
  const cursors = tx.all(cursorsOf({ output }));
  return oldestLines(
    cursors.map(({ source, number }) => linesAfter(tx, source, number)),
    LINES_A_RUN,
  );
}

/** Records that an output has delivered these lines, which {@link nextLines} has returned. */
export function moveCursors(tx: Tx, output: AuditOutputName, lines: readonly PlacedLine[]): void {
  const ends = new Map(lines.map(({ source, number }) => [source, number]));
  for (const [source, number] of ends) tx.run(moved({ output, source, number }));
  deleteDelivered(tx);
}

/**
 * Deletes acts that every output has delivered, a limited number, but never the newest one, from which the next number follows. Returns
 * whether there may be more.
 */
export function deleteDelivered(tx: Tx): boolean {
  const cursors = tx.all(allCursors({})).filter(({ source }) => source === 'organization');
  const delivered = Math.min(SOURCES.organization.newest(tx), ...cursors.map(({ number }) => number));
  const old = tx.all(actsBefore({ id: delivered }));
  const last = old.at(-1);
  if (last) tx.run(deletedTo({ id: last.id }));
  return old.length === MOST_DELETED;
}

/** Returns for how many milliseconds the oldest line has waited that an output has not delivered, by the name of each output that is on. */
export function auditLagMs(tx: Tx): Partial<Record<AuditOutputName, number>> {
  const lags: Partial<Record<AuditOutputName, number>> = {};
  for (const { output, source, number } of tx.all(allCursors({}))) {
    const lag = tx.now - (SOURCES[source].firstAfter(tx, number) ?? tx.now);
    lags[output] = Math.max(lags[output] ?? 0, lag);
  }
  return lags;
}

const allCursors = compileOnce(() => query.selectFrom('audit_cursors').selectAll().limit(sql.lit(10)));

const cursorsOf = compileOnce(({ output }: { output: AuditOutputName }) =>
  query.selectFrom('audit_cursors').select(['source', 'number']).where('output', '=', output),
);

const moved = compileOnce(
  ({ output, source, number }: { output: AuditOutputName; source: AuditSource; number: number }) =>
    query.updateTable('audit_cursors').set({ number }).where('output', '=', output).where('source', '=', source),
);

const actsBefore = compileOnce(({ id }: { id: number }) =>
  query.selectFrom('queued_acts').select('id').where('id', '<', id).orderBy('id').limit(sql.lit(MOST_DELETED)),
);

const deletedTo = compileOnce(({ id }: { id: number }) => query.deleteFrom('queued_acts').where('id', '<=', id));
