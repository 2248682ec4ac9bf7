import { BEGINNING, OPERATORS, eventId, parseEventId, type EventType } from '../../domain/event.js';
import { BEFORE_OUTPUT } from '../../domain/instance-codes.js';
import { Refusal } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Platform } from '../system/platform.js';

/** An event with the attributes that CloudEvents names. `time` is in milliseconds since 1970. */
export interface EventDetails {
  id: string;
  source: string;
  type: EventType;
  subject: string;
  time: number;
  data: Record<string, unknown>;
}

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

/** Returns the number of the newest event of a stream; 0: it has none. */
export function newestNumber(tx: Tx, stream: string): number {
  return tx.get(newestOf({ stream }))?.number ?? 0;
}

const newestOf = compileOnce(({ stream }: { stream: string }) =>
  query.selectFrom('events').select('number').where('stream', '=', stream).orderBy('number', 'desc').limit(1),
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
  if (id === BEGINNING && expiredTo(tx, stream) === 0) return 0;
  const at = parseEventId(id);
  const known = at && tx.get(eventAt({ stream, number: at.number }));
  if (known?.epoch !== at?.epoch || at === undefined || at.number < expiredTo(tx, stream))
    throw eventsExpired(tx, stream);
  return at.number;
}

const eventAt = compileOnce(({ stream, number }: { stream: string; number: number }) =>
  query.selectFrom('events').select('epoch').where('stream', '=', stream).where('number', '=', number),
);

/** Returns the refusal of a reader after whose last event others have been deleted. */
export function eventsExpired(tx: Tx, stream: string): Refusal {
  const [oldest] = eventsAfter(tx, stream, expiredTo(tx, stream), 1);
  const message = 'this event is unknown or no longer kept: begin at the oldest one, or without an id at the newest';
  return new Refusal('EVENTS_EXPIRED', message, { oldest_id: oldest ? eventId(oldest) : null });
}

/** Describes an event to whoever may read its stream. */
export function describeEvent({ publicUrl }: Pick<Platform, 'publicUrl'>, event: Row<'events'>): EventDetails {
  const { stream, type, subject, at, kind, message } = event;
  const path = stream === OPERATORS ? '/v1/operator' : `/v1/orgs/${stream}`;
  const told = kind === null ? {} : { kind, message: withoutOutput(message ?? '') };
  const data = { ...(JSON.parse(event.data) as Record<string, unknown>), ...told };
  return { id: eventId(event), source: `${publicUrl ?? ''}${path}`, type, subject, time: at, data };
}

/** Returns a message without what the workload has printed, which may contain secrets. */
function withoutOutput(message: string): string {
  const [words = ''] = message.split(`${BEFORE_OUTPUT}\n`, 1);
  return words;
}
