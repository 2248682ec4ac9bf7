import { BEGINNING, EVENT_TYPES, OPERATORS, eventId, type EventType } from '../../domain/event.js';
import { invalidField } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, listIn, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { pageOf, restOf, writeCursor, type Page, type PageRequest } from '../system/pages.js';
import { eventsAfter, newestEvent, newestNumber, numberOf } from './read.js';

/** Most rows of a stream that one read looks at to find those of a filter. */
export const MOST_SCANNED = 2_000;

/** Which events of a stream a reader wants; null: all. */
export interface EventFilter {
  /** A JSON array of types. */
  types: string | null;
  instanceId: string | null;
  /** Of the stream for operators: the machine that the data name. */
  machineId: string | null;
}

/** How far a stream was read: the number and the id of an event. */
export interface Position {
  number: number;
  id: string;
}

export interface EventSlice {
  events: Row<'events'>[];
  /** Up to where the stream was looked through. */
  at: Position;
  /** Whether the stream goes on after that. */
  hasMore: boolean;
}

/** Which events a request asks for. Absent fields match all. */
export interface EventSelection {
  /** Types with commas between them. */
  type?: string;
  instance_id?: string;
  machine_id?: string;
}

/** Reads the filter of a request: `type` is a list of types with commas between them. Refuses with VALIDATION_FAILED an unknown type. */
export function filterOf({ type, instance_id, machine_id }: EventSelection): EventFilter {
  const types = type?.split(',').map((name) => name.trim());
  const unknown = types?.find((name) => !EVENT_TYPES.includes(name as EventType));
  if (unknown !== undefined) throw invalidField('type', `there are no events of the type "${unknown.slice(0, 100)}"`);
  return {
    types: types ? JSON.stringify(types) : null,
    instanceId: instance_id ?? null,
    machineId: machine_id ?? null,
  };
}

/** Returns the place after the event with this id; without one, after the newest event. Refuses with EVENTS_EXPIRED. */
export function positionAfter(tx: Tx, stream: string, id: string | undefined): Position {
  if (id !== undefined) return { number: numberOf(tx, stream, id), id };
  const newest = newestEvent(tx, stream);
  return newest ? positionOf(newest) : { number: 0, id: BEGINNING };
}

export function positionOf(event: Pick<Row<'events'>, 'epoch' | 'number'>): Position {
  return { number: event.number, id: eventId(event) };
}

/**
 * Returns the next events of a stream after a position that match the filter, the oldest first: at most `most`. Looks at no more than
 * {@link MOST_SCANNED} rows, so there can be fewer although the stream goes on.
 */
export function nextEvents(tx: Tx, stream: string, from: Position, filter: EventFilter, most: number): EventSlice {
  if (isEmpty(filter)) {
    const events = eventsAfter(tx, stream, from.number, most);
    return sliceTo(tx, stream, events, positionOfLast(events) ?? from, events.length === most);
  }
  const end = scanEnd(tx, stream, from, filter);
  if (!end) return { events: [], at: from, hasMore: false };
  const range = { stream, after: from.number, to: end.number, most, ...filter };
  const events = tx.all(isOfIndex(stream, filter) ? ofInstance(range) : inRange(range));
  const isFull = events.length === most;
  return sliceTo(tx, stream, events, (isFull ? positionOfLast(events) : undefined) ?? end, true);
}

function sliceTo(tx: Tx, stream: string, events: Row<'events'>[], at: Position, canHaveMore: boolean): EventSlice {
  return { events, at, hasMore: canHaveMore && at.number < newestNumber(tx, stream) };
}

function positionOfLast(events: Row<'events'>[]): Position | undefined {
  const last = events.at(-1);
  return last && positionOf(last);
}

function isEmpty({ types, instanceId, machineId }: EventFilter): boolean {
  return types === null && instanceId === null && machineId === null;
}

/** Whether an index has the events of the filter: an instance has at most 1,000. */
function isOfIndex(stream: string, { instanceId }: EventFilter): boolean {
  return instanceId !== null && stream !== OPERATORS;
}

/** Returns the last event that a read with a filter looks at after `from`; undefined: there is none. */
function scanEnd(tx: Tx, stream: string, from: Position, filter: EventFilter): Position | undefined {
  const scanned = isOfIndex(stream, filter) ? undefined : tx.get(lastScanned({ stream, after: from.number }));
  const end = scanned ?? newestEvent(tx, stream);
  return end && end.number > from.number ? positionOf(end) : undefined;
}

const lastScanned = compileOnce(({ stream, after }: { stream: string; after: number }) =>
  query
    .selectFrom('events')
    .select(['number', 'epoch'])
    .where('stream', '=', stream)
    .where('number', '>', after)
    .orderBy('number')
    .offset(sql.lit(MOST_SCANNED - 1))
    .limit(sql.lit(1)),
);

interface Range extends Record<string, string | number | null> {
  stream: string;
  after: number;
  to: number;
  most: number;
  types: string | null;
  instanceId: string | null;
  machineId: string | null;
}

const isOfTypes = (types: string | null) => sql<boolean>`(${types} IS NULL OR type IN ${listIn(types ?? '')})`;

const inRange = compileOnce(({ stream, after, to, most, types, instanceId, machineId }: Range) =>
  query
    .selectFrom('events')
    .selectAll()
    .where('stream', '=', stream)
    .where('number', '>', after)
    .where('number', '<=', to)
    .where(isOfTypes(types))
    .where(isAbout('instance_id', instanceId))
    .where(isAbout('machine_id', machineId))
    .orderBy('number')
    .limit(most),
);

/** Of an event for operators, only the data names the instance and the machine. */
const isAbout = (field: 'instance_id' | 'machine_id', id: string | null) =>
  sql<boolean>`(${id} IS NULL OR data ->> ${sql.lit(`$.${field}`)} = ${id})`;

const ofInstance = compileOnce(({ stream, after, to, most, types, instanceId }: Range) =>
  query
    .selectFrom('events')
    .selectAll()
    .where('instance_id', '=', instanceId)
    // The sign keeps SQLite from reading the whole stream by its primary key instead.
    .where(sql<boolean>`+stream = ${stream}`)
    .where('number', '>', after)
    .where('number', '<=', to)
    .where(isOfTypes(types))
    .orderBy('number')
    .limit(most),
);

const NEWEST_FIRST = { by: { number: 'desc' }, keyOf: ({ number }: { number: number }) => [number] } as const;

/**
 * Returns a page of the events of a stream that match the filter, the newest first. Looks at no more than {@link MOST_SCANNED} rows, so a
 * page can have fewer events than its limit although it is not the last. Refuses with VALIDATION_FAILED a cursor of another list.
 */
export function newestEvents(tx: Tx, stream: string, filter: EventFilter, request: PageRequest): Page<Row<'events'>> {
  const all = query.selectFrom('events').selectAll();
  if (isOfIndex(stream, filter)) {
    const own = all.where('instance_id', '=', filter.instanceId).where(sql<boolean>`+stream = ${stream}`);
    return pageOf(tx, own.where(isOfTypes(filter.types)), request, NEWEST_FIRST);
  }
  const ofStream = all.where('stream', '=', stream);
  const oldest = tx.get(
    restOf(ofStream, request, NEWEST_FIRST.by)
      .offset(sql.lit(MOST_SCANNED - 1))
      .limit(sql.lit(1)),
  );
  const matching = ofStream
    .where('number', '>=', oldest?.number ?? 0)
    .where(isOfTypes(filter.types))
    .where(isAbout('instance_id', filter.instanceId))
    .where(isAbout('machine_id', filter.machineId));
  const { items, next_cursor } = pageOf(tx, matching, request, NEWEST_FIRST);
  return { items, next_cursor: next_cursor ?? (oldest ? writeCursor(NEWEST_FIRST.keyOf(oldest)) : null) };
}
