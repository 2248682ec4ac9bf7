import { BEGINNING, eventId, parseEventId } from '../../domain/event.js';
import { Refusal } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';

/** Most rows that a worker or a stream reads at once. */
export const MOST_EVENTS = 200;

/** Returns the next events of a stream after this number, the oldest first: at most `most`. */
export function eventsAfter(tx: Tx, stream: string, number: number, most = MOST_EVENTS): Row<'events'>[] {
  return tx.all(nextOf({ stream, number, most }));
}

const nextOf = compileOnce(({ stream, number, most }: { stream: string; number: number; most: number }) =>
  query
    .selectFrom('events')
    .selectAll()
    .where('stream', '=', stream)
    .where('number', '>', number)
    .orderBy('number')
    .limit(most),
);

/** Returns epoch and number of the newest event of a stream; undefined: it has none. */
export function newestEvent(tx: Tx, stream: string): Pick<Row<'events'>, 'epoch' | 'number'> | undefined {
  return tx.get(newestOf({ stream }));
}

const newestOf = compileOnce(({ stream }: { stream: string }) =>
  query
    .selectFrom('events')
    .select(['epoch', 'number'])
    .where('stream', '=', stream)
    .orderBy('number', 'desc')
    .limit(sql.lit(1)),
);

/** Returns the number of the newest event of a stream; 0: it has none. */
export function newestNumber(tx: Tx, stream: string): number {
  return newestEvent(tx, stream)?.number ?? 0;
}

/** Returns the event of a stream with this epoch and number; undefined: it is not kept, or another one after a restore. */
export function findEvent(
  tx: Tx,
  stream: string,
  { epoch, number }: Pick<Row<'events'>, 'epoch' | 'number'>,
): Row<'events'> | undefined {
  const event = tx.get(eventAt({ stream, number }));
  return event?.epoch === epoch ? event : undefined;
}

const eventAt = compileOnce(({ stream, number }: { stream: string; number: number }) =>
  query.selectFrom('events').selectAll().where('stream', '=', stream).where('number', '=', number),
);

/** Returns up to which number a stream has expired: events after it are there without a gap. */
export function expiredTo(tx: Tx, stream: string): number {
  return tx.get(expiryOf({ stream }))?.expired_to ?? 0;
}

const expiryOf = compileOnce(({ stream }: { stream: string }) =>
  query.selectFrom('event_streams').select('expired_to').where('stream', '=', stream),
);

/**
 * Returns the number of the event with this id, after which nothing of the stream is missing; 0 for {@link BEGINNING}. Refuses with
 * EVENTS_EXPIRED an id that is unknown, as after a restore, or after which events have been deleted.
 */
export function numberOf(tx: Tx, stream: string, id: string): number {
  const lost = expiredTo(tx, stream);
  if (id === BEGINNING && lost === 0) return 0;
  const at = parseEventId(id);
  if (at && at.number >= lost && findEvent(tx, stream, at)) return at.number;
  throw eventsExpired(tx, stream);
}

const UNKNOWN_EVENT =
  'this event is unknown or no longer kept: begin at the oldest one, or without an id at the newest';

/** Returns the refusal of a reader after whose last event others have been deleted; it names the oldest one that is kept. */
export function eventsExpired(tx: Tx, stream: string, message = UNKNOWN_EVENT): Refusal {
  const [oldest] = eventsAfter(tx, stream, expiredTo(tx, stream), 1);
  return new Refusal('EVENTS_EXPIRED', message, { oldest_id: oldest ? eventId(oldest) : null });
}
