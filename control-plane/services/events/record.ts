import type { RawBuilder } from 'kysely';
import type { EventData, EventType } from '../../domain/event.js';
import { EVENT_EPOCH } from '../../store/meta.js';
import { compileOnce, query, sql, statement } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';

/** The events of a stream that do not belong to an instance: older ones are deleted. */
const KEPT_OF_STREAM = 1_000_000;
/** The events of one instance that are kept. */
const KEPT_OF_INSTANCE = 1_000;

/** Adds an event to an organization's stream, or to that of the operators. `subject` is the path of what it is about. */
export function recordEvent<Type extends EventType>(
  tx: Tx,
  stream: string,
  type: Type,
  subject: string,
  data: EventData[Type],
): void {
  const event = { stream, at: tx.now, type, subject, data: JSON.stringify(data) };
  const { number } = tx.get(addedToStream(event)) ?? { number: 0 };
  if (number > KEPT_OF_STREAM) dropSurplus(tx, stream, number - KEPT_OF_STREAM);
}

/** Adds an event to an instance's timeline, which is a part of the stream of its organization. */
export function recordInstanceEvent<Type extends EventType>(
  tx: Tx,
  instanceId: string,
  type: Type,
  { kind, message }: { kind: string; message: string },
  data: EventData[Type],
): void {
  const event = { instanceId, at: tx.now, type, kind, message, data: JSON.stringify(data) };
  const { stream, number } = tx.get(addedToInstance(event)) ?? { stream: '', number: 0 };
  if (number > KEPT_OF_STREAM) dropSurplus(tx, stream, number - KEPT_OF_STREAM);
  const last = tx.get(firstTooMany({ instanceId }));
  if (!last) return;
  tx.run(query.deleteFrom('events').where('instance_id', '=', instanceId).where('number', '<=', last.number));
  noteExpired(tx, stream, last.number);
}

/** Records that rows of a stream up to `number` have been deleted: from there on nobody can read it without a gap. */
export function noteExpired(tx: Tx, stream: string, number: number): void {
  tx.run(
    query
      .insertInto('event_streams')
      .values({ stream, expired_to: number })
      .onConflict((conflict) =>
        conflict.column('stream').doUpdateSet({ expired_to: sql`max(expired_to, excluded.expired_to)` }),
      ),
  );
}

function dropSurplus(tx: Tx, stream: string, number: number): void {
  const surplus = query.deleteFrom('events').where('stream', '=', stream).where('number', '=', number);
  if (tx.run(surplus.where('instance_id', 'is', null)) > 0) noteExpired(tx, stream, number);
}

type Texts<Name extends string> = Record<Name, string> & { at: number };

/** The newest row of a stream is never deleted, so the next number follows from it. */
const numberAfter = (stream: RawBuilder<unknown>) =>
  sql`coalesce((SELECT number FROM events WHERE stream = ${stream} ORDER BY number DESC LIMIT 1), 0) + 1`;

const addedToStream = compileOnce(
  ({ stream, at, type, subject, data }: Texts<'stream' | 'type' | 'subject' | 'data'>) =>
    statement<{ number: number }>(sql`
    INSERT INTO events (stream, number, epoch, at, type, subject, data)
    VALUES (${stream}, ${numberAfter(sql`${stream}`)},
      ${EVENT_EPOCH}, ${at}, ${type}, ${subject}, ${data})
    RETURNING number`),
);

const addedToInstance = compileOnce(
  ({ instanceId, at, type, kind, message, data }: Texts<'instanceId' | 'type' | 'kind' | 'message' | 'data'>) =>
    statement<{ stream: string; number: number }>(sql`
    INSERT INTO events (stream, number, epoch, at, type, subject, instance_id, kind, message, data)
    SELECT organization_id, ${numberAfter(sql`organization_id`)},
      ${EVENT_EPOCH}, ${at}, ${type}, 'instances/' || id, id, ${kind}, ${message}, ${data}
    FROM instances WHERE id = ${instanceId}
    RETURNING stream, number`),
);

const firstTooMany = compileOnce(({ instanceId }: { instanceId: string }) =>
  query
    .selectFrom('events')
    .select('number')
    .where('instance_id', '=', instanceId)
    .orderBy('number', 'desc')
    .offset(sql.lit(KEPT_OF_INSTANCE))
    .limit(sql.lit(1)),
);
