import type { Compilable } from 'kysely';
import {
  auditId,
  auditLine,
  lostLine,
  type AuditFacts,
  type AuditSource,
  type PlacedLine,
} from '../../domain/audit-line.js';
import { OPERATORS } from '../../domain/event.js';
import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { eventsAfter, newestNumber } from '../events/read.js';

/** Most lines of a source that one run reads. */
export const LINES_A_RUN = 100;

/** A record at its place in a source. */
interface Place {
  epoch: number;
  number: number;
  at: number;
}

interface Source {
  /** Returns the number of the newest record; 0: there is none. */
  newest(tx: Tx): number;
  /** Returns when the first record after this number was made, in milliseconds since 1970; undefined: there is none. */
  firstAfter(tx: Tx, number: number): number | undefined;
  /** Returns the next records after this number, the oldest first; one without a text has been deleted meanwhile. */
  after(tx: Tx, number: number): (Place & { text: string | undefined })[];
}

export const SOURCES: Readonly<Record<AuditSource, Source>> = {
  audit: {
    newest: (tx) => tx.get(newestEntry({}))?.id ?? 0,
    firstAfter: (tx, number) => tx.get(nextEntry({ number }))?.at,
    after: (tx, number) => tx.all(entriesAfter({ number })).map(describeEntry),
  },
  event: {
    newest: (tx) => newestNumber(tx, OPERATORS),
    firstAfter: (tx, number) => eventsAfter(tx, OPERATORS, number, 1)[0]?.at,
    after: (tx, number) => eventsAfter(tx, OPERATORS, number, LINES_A_RUN).map(describeEvent),
  },
  organization: {
    newest: (tx) => tx.get(newestAct({}))?.id ?? 0,
    firstAfter: (tx, number) => tx.get(nextAct({ number }))?.at,
    after: (tx, number) => tx.all(actsAfter({ number })).map(describeAct),
  },
};

/**
 * Returns the next lines of a source after this number, the oldest first, at most {@link LINES_A_RUN}. One line stands for those that were
 * deleted before they could be read: numbers have no gaps otherwise.
 */
export function linesAfter(tx: Tx, source: AuditSource, number: number): PlacedLine[] {
  const lines: PlacedLine[] = [];
  let last = number;
  let gone: Place | undefined;
  const tellLost = (to: number, { epoch, at }: Place) => {
    if (to > last) lines.push(lostLine(source, { epoch, at, first: last + 1, last: to }));
  };
  for (const record of SOURCES[source].after(tx, number)) {
    if (record.text === undefined) {
      gone = record;
      continue;
    }
    tellLost(record.number - 1, gone ?? record);
    lines.push({ source, number: record.number, at: record.at, text: record.text });
    last = record.number;
    gone = undefined;
  }
  if (gone) tellLost(gone.number, gone);
  return lines;
}

type Entry = Selected<typeof entriesAfter>;

function describeEntry({ id, epoch, at, actor_id, email, action, subject, details }: Entry) {
  const actor = { kind: 'operator', id: actor_id, email };
  const what = { actor, action, subject, details: JSON.parse(details) as unknown };
  return described('audit', { epoch: epoch ?? 0, number: id, at }, what);
}

function describeEvent({ epoch, number, at, type, subject, data }: ReturnType<typeof eventsAfter>[number]) {
  const what = { actor: { kind: 'system' }, action: type, subject, details: JSON.parse(data) as unknown };
  return described('event', { epoch, number, at }, what);
}

/** Leaves out the address of a user and the network address, which operators are not shown either. */
function describeAct({
  id,
  epoch,
  at,
  organization_id,
  actor_kind,
  actor_id,
  action,
  object,
  reason,
}: Selected<typeof actsAfter>) {
  const place = { epoch, number: id, at };
  if (action === null) return { ...place, text: undefined };
  const actor = { kind: actor_kind ?? '', id: actor_id };
  return described('organization', place, {
    actor,
    action,
    organization_id,
    subject: object ?? '',
    details: { reason },
  });
}

function described(source: AuditSource, place: Place, what: Omit<AuditFacts, 'source' | 'id' | 'at'>) {
  const id = auditId(source, place.epoch, place.number);
  return { ...place, text: auditLine({ source, id, at: new Date(place.at).toISOString(), ...what }) };
}

/** The rows of a statement that is compiled once. */
type Selected<Statement> = Statement extends (parameters: never) => Compilable<infer Row> ? Row : never;

const newestEntry = compileOnce(() =>
  query.selectFrom('audit_log').select('id').orderBy('id', 'desc').limit(sql.lit(1)),
);

const nextEntry = compileOnce(({ number }: { number: number }) =>
  query.selectFrom('audit_log').select('at').where('id', '>', number).orderBy('id').limit(sql.lit(1)),
);

const entriesAfter = compileOnce(({ number }: { number: number }) =>
  query
    .selectFrom('audit_log')
    .innerJoin('users', 'users.id', 'audit_log.actor_id')
    .selectAll('audit_log')
    .select('users.email')
    .where('audit_log.id', '>', number)
    .orderBy('audit_log.id')
    .limit(sql.lit(LINES_A_RUN)),
);

const newestAct = compileOnce(() =>
  query.selectFrom('queued_acts').select('id').orderBy('id', 'desc').limit(sql.lit(1)),
);

const nextAct = compileOnce(({ number }: { number: number }) =>
  query.selectFrom('queued_acts').select('at').where('id', '>', number).orderBy('id').limit(sql.lit(1)),
);

const actsAfter = compileOnce(({ number }: { number: number }) =>
  query
    .selectFrom('queued_acts as queued')
    .leftJoin('organization_acts as act', (join) =>
      join.onRef('act.organization_id', '=', 'queued.organization_id').onRef('act.number', '=', 'queued.number'),
    )
    .select(['queued.id', 'queued.epoch', 'queued.at', 'queued.organization_id'])
    .select(['act.actor_kind', 'act.actor_id', 'act.action', 'act.object', 'act.reason'])
    .where('queued.id', '>', number)
    .orderBy('queued.id')
    .limit(sql.lit(LINES_A_RUN)),
);
