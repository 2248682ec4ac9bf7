import { createParser } from 'eventsource-parser';
import type { Client } from 'openapi-fetch';
import { ApiError, EventsExpiredError, UNEXPECTED_ANSWER } from './errors.js';
import type { paths } from './gen/schema.js';
import type { Wait } from './retries.js';

/** An event of an organization, with the fields of CloudEvents. */
export type GpurentEvent = paths['/v1/events']['get']['responses'][200]['content']['application/json']['items'][number];

export interface FollowOptions {
  /** The id of the last event that is known: it begins with the one after it. Without one it begins with what happens from now on. */
  after?: string;
  /** Only events of these types. */
  types?: readonly GpurentEvent['type'][];
  /** Only events about this instance. */
  instanceId?: string;
  signal?: AbortSignal;
  /** Is told when events come from now on (true), and when the connection is lost (false). */
  onConnection?: (isOpen: boolean) => void;
}

const AGAIN_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
/** A connection that lasts for so long is no failure: where nothing happens, and something on the way ends it, the waits do not grow. */
const HEALTHY_MS = 5_000;
/** The control plane sends something every 20 seconds: a connection that is silent for longer than this is lost. */
const SILENCE_MS = 50_000;
/** Far more than the control plane ever sends as one event: what goes on for longer is none. */
const MOST_CHARS = 1_048_576;

/**
 * Yields events as they happen. After a lost connection it goes on where it was, and misses none. Ends when the signal is aborted. Throws
 * EventsExpiredError if events were deleted meanwhile, and ApiError for a credential that has ended or an address without a control plane.
 */
export async function* followEvents(
  api: Client<paths, 'application/json'>,
  wait: Wait,
  { after, types, instanceId, signal = new AbortController().signal, onConnection = () => undefined }: FollowOptions,
): AsyncGenerator<GpurentEvent, void, undefined> {
  let last = after;
  let wasReached = false;
  for (let failures = 0; !signal.aborted;) {
    let openedAt = Infinity;
    const onOpen = () => {
      wasReached = true;
      openedAt = performance.now();
      onConnection(true);
    };
    try {
      if (last === undefined) {
        last = await newestId(api, signal);
        wasReached = true;
      }
      const query = {
        ...(types && { type: types.join(',') }),
        ...(instanceId !== undefined && { instance_id: instanceId }),
      };
      for await (const { id, event } of streamOf(api, query, last, signal, onOpen)) {
        failures = 0;
        last = id;
        yield event;
      }
    } catch (error) {
      const reason = whyItEnds(error, wasReached);
      if (reason) throw reason;
    }
    onConnection(false);
    failures = performance.now() - openedAt >= HEALTHY_MS ? 1 : failures + 1;
    await wait(waitAfter(failures), signal).catch(() => undefined);
  }
}

/** Up to half more than its share, so that not all who were cut off at once come back at once. */
function waitAfter(failures: number): number {
  return Math.min(AGAIN_MS * 2 ** (failures - 1) * (1 + Math.random() / 2), LONGEST_WAIT_MS);
}

/** Returns the error with which nobody can follow the events any more; undefined: a later connection can. */
function whyItEnds(error: unknown, wasReached: boolean): Error | undefined {
  if (error instanceof EventsExpiredError) return error;
  if (!(error instanceof ApiError)) return undefined;
  // A proxy on the way knows nothing of the events; the address was right before.
  if (error.code === UNEXPECTED_ANSWER && wasReached) return undefined;
  if (error.is('EVENTS_EXPIRED')) return new EventsExpiredError();
  return error.status < 500 && error.status !== 429 ? error : undefined;
}

/** Returns the id after which events are still to happen: a connection that is lost before the first one misses none. */
async function newestId(api: Client<paths, 'application/json'>, signal: AbortSignal): Promise<string | undefined> {
  const { data } = await api.GET('/v1/events', { params: { query: { limit: 1 } }, signal });
  return data?.last_id ?? undefined;
}

interface Received {
  id: string;
  event: GpurentEvent;
}

async function* streamOf(
  api: Client<paths, 'application/json'>,
  query: { type?: string; instance_id?: string },
  after: string | undefined,
  signal: AbortSignal,
  onOpen: () => void,
): AsyncGenerator<Received> {
  const headers = { Accept: 'text/event-stream', ...(after !== undefined && { 'Last-Event-ID': after }) };
  const { data } = await api.GET('/v1/events', { params: { query }, headers, parseAs: 'stream', signal });
  if (!data) return;
  onOpen();
  const received: Received[] = [];
  const parser = createParser({
    onEvent: ({ id, event, data: text }) => {
      if (event === 'expired') throw new EventsExpiredError();
      if (id !== undefined && id !== '') received.push({ id, event: JSON.parse(text) as GpurentEvent });
    },
  });
  let begun = 0;
  for await (const text of textsOf(data, signal)) {
    const end = text.lastIndexOf('\n\n');
    begun = end < 0 ? begun + text.length : text.length - end;
    if (begun > MOST_CHARS) throw new Error('the control plane sends an event that does not end');
    parser.feed(text);
    yield* received.splice(0);
  }
}

/** Yields the text of a stream as it comes. Throws if nothing has come for too long. Not every browser can iterate over a stream itself. */
async function* textsOf(stream: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<string> {
  signal.throwIfAborted();
  const reader = stream.getReader();
  const stop = () => void reader.cancel().catch(() => undefined);
  // Node forgets the signal of a request that is collected as garbage while its answer still arrives.
  signal.addEventListener('abort', stop, { once: true });
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const { done, value } = await inTime(reader.read());
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  } finally {
    signal.removeEventListener('abort', stop);
    stop();
  }
}

function inTime<T>(read: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the control plane has sent nothing for too long')), SILENCE_MS);
    read.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
