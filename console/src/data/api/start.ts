import { api, type GpurentEvent } from './api.js';
import { allowReads } from './first-reads.js';
import type { Me } from './models.js';
import { may } from './rights.js';

/** The last event before the page read what it shows. */
interface Start {
  /** Its id. */
  after: string;
  /** What was read until then, in milliseconds since 1970 by the computer's clock, can be older than it. */
  at: number;
}

let start: Start | undefined;

/** Returns where the page began; undefined: nobody knows, and what it has read can be older than every event. */
export function startNow(): Start | undefined {
  return start;
}

/** Asks for the last event, and then lets the page read. */
export async function readStart(reader: Me, signal: AbortSignal): Promise<void> {
  const at = Date.now();
  const query = { limit: 1 };
  // Without an answer nobody knows where it is: the stream then says why there are no events.
  const page = may(reader, 'read')
    ? await api.get('/v1/events', { params: { query }, signal }).catch(() => undefined)
    : undefined;
  const isBefore = allowReads();
  if (isBefore && page && page.last_id !== null) start = { after: page.last_id, at };
}

/** Returns the events after an event; undefined: they are not known, or too many. */
export async function eventsAfter(after: string): Promise<GpurentEvent[] | undefined> {
  const page = await api.get('/v1/events', { params: { query: { after } } }).catch(() => undefined);
  return page?.has_more === false ? page.items : undefined;
}
