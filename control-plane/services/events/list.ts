import { invalidField } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import type { PageRequest } from '../system/pages.js';
import type { Core, Platform } from '../system/platform.js';
import { envelopeOf, type Envelope } from './envelope.js';
import { filterOf, newestEvents, nextEvents, positionAfter, type EventSelection, type Position } from './slice.js';

export interface EventQuery extends PageRequest, EventSelection {
  /** The id of an event. */
  after?: string;
}

export interface EventPage {
  items: Envelope[];
  next_cursor: string | null;
  /** Where a later request goes on with `after`; null where that would leave out events, on a page by cursor. */
  last_id: string | null;
  /** Whether there are events after `last_id` now. */
  has_more: boolean;
}

const DEFAULT_LIMIT = 100;

/**
 * Lists events of a stream: without `after` the newest first, and pages by cursor; with `after` those that follow this event, the oldest
 * first. Refuses with VALIDATION_FAILED, and with EVENTS_EXPIRED if events after this one may be missing.
 */
export function listStream(platform: Platform, stream: string, request: EventQuery): EventPage {
  const filter = filterOf(request);
  const { after, cursor, limit = DEFAULT_LIMIT } = request;
  if (after !== undefined && cursor !== undefined)
    throw invalidField('cursor', 'send `after` or `cursor`, not both: `last_id` is the next `after`');
  const view = (row: Row<'events'>) => envelopeOf(platform, row);
  return platform.store.transact((tx) => {
    if (after === undefined) {
      const { items, next_cursor } = newestEvents(tx, stream, filter, request);
      const last_id = cursor === undefined ? positionAfter(tx, stream, undefined).id : null;
      return { items: items.map(view), next_cursor, last_id, has_more: false };
    }
    const { events, at, hasMore } = nextEvents(tx, stream, positionAfter(tx, stream, after), filter, limit);
    return { items: events.map(view), next_cursor: null, last_id: at.id, has_more: hasMore };
  });
}

/**
 * Returns the place at which a stream to a client begins: after the event with this id, or else after the newest one. Nothing that is not
 * durable is before it. Refuses with EVENTS_EXPIRED.
 */
export function placeAfter({ store }: Pick<Core, 'store'>, stream: string, id: string | undefined): Position {
  return store.alone(() => store.transact((tx) => positionAfter(tx, stream, id)));
}
