import { QueryObserver, type QueryClient } from '@tanstack/react-query';
import { ApiError, api, EventsExpiredError, goToSignIn, isSignedOut, type GpurentEvent } from './api.js';
import { serverNow } from './clock.js';
import { concernsOf } from './concerns.js';
import { connectionNow, setConnection, type Connection } from './connection.js';
import type { Me } from './models.js';
import { inOneTab } from './one-tab.js';
import { me } from './queries.js';
import { may } from './rights.js';

/** How long events are gathered before what they concern is read again: a deploy tells several at once. */
const GATHER_MS = 50;
/** How often it is looked whether a reader without events may have them now, and is signed in still. */
const LOOK_MS = 20_000;
/** When a stream that was refused is asked for again. */
const AGAIN_MS = 15_000;

/** What the tab that follows the events tells all tabs. */
type Message = { connection: Connection } | { event: Pick<GpurentEvent, 'type' | 'subject'> };
type Tell = (message: Message) => void;

/**
 * Follows the organization's events until the signal is aborted, and has every query read again that an event concerns. After a cut it
 * goes on where it was; if events were deleted meanwhile, or the browser was offline, everything is read again. Of the tabs of a browser
 * one follows for all: a browser has few connections to a server, and a user few streams.
 */
export async function followLive(queries: QueryClient, signal: AbortSignal): Promise<void> {
  const { user, active_organization_id } = await whenMe(queries, () => true, signal);
  await inOneTab<Message>(
    {
      name: `gpurent.events.${user.id}.${active_organization_id ?? ''}`,
      lead: (tell, turn) => follow(queries, tell, turn),
      hear: hearing(queries),
      latest: () => ({ connection: connectionNow() }),
    },
    signal,
  );
}

/** Returns what a tab does with what it is told. */
function hearing(queries: QueryClient): Tell {
  const keys = new Map<string, readonly string[]>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const refresh = () => {
    timer = undefined;
    for (const queryKey of keys.values()) void queries.invalidateQueries({ queryKey });
    keys.clear();
  };
  return (message) => {
    if ('event' in message) {
      for (const key of concernsOf(message.event)) keys.set(key.join('/'), key);
      timer ??= setTimeout(refresh, GATHER_MS);
      return;
    }
    const [before, { connection }] = [connectionNow(), message];
    setConnection(connection);
    const isOther = before.state !== connection.state || before.since !== connection.since;
    // What was read before the stream was open can have changed since, and no event tells it. What is shown to a reader without events
    // may be theirs no more: they were removed, or have another role.
    const isOld = connection.state === 'live' || (connection.state === 'off' && before.state !== 'connecting');
    if (isOther && isOld) void queries.invalidateQueries();
  };
}

/** Follows the events for all tabs: as soon as, and as long as, the role of the reader has events. Ends once nobody is signed in. */
async function follow(queries: QueryClient, tell: Tell, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    if (!may(queries.getQueryData(me.queryKey), 'read')) {
      tell(now('off'));
      await whenMe(queries, (user) => may(user, 'read'), signal);
    }
    const attempt = untilNetworkChanges(tell, signal);
    try {
      await followOnce(tell, attempt);
    } catch (error) {
      signal.throwIfAborted();
      if (isSignedOut(error)) return goToSignIn();
      if (error instanceof ApiError && error.status === 403) {
        tell(now('off'));
        await pause(LOOK_MS, attempt);
      } else {
        tell(now('cut', error instanceof ApiError ? error.message : undefined));
        if (!(error instanceof EventsExpiredError)) await pause(AGAIN_MS, attempt);
      }
    }
  }
}

async function followOnce(tell: Tell, signal: AbortSignal): Promise<void> {
  const onConnection = (isOpen: boolean) => {
    if (!signal.aborted) tell(isOpen ? { connection: { state: 'live', since: serverNow() } } : now('cut'));
  };
  for await (const { type, subject } of api.events({ signal, onConnection })) tell({ event: { type, subject } });
}

/** Returns that a state begins, or goes on. */
function now(state: Connection['state'], reason?: string): Message {
  const before = connectionNow();
  return { connection: { state, since: before.state === state ? before.since : serverNow(), reason } };
}

/**
 * Returns a signal that is aborted with `signal`, and as soon as the browser loses its network or has one again: nobody has to wait until
 * a silence is noticed, or until the next attempt is due.
 */
function untilNetworkChanges(tell: Tell, signal: AbortSignal): AbortSignal {
  const changed = new AbortController();
  const either = AbortSignal.any([signal, changed.signal]);
  window.addEventListener('online', () => changed.abort(), { signal: either });
  window.addEventListener(
    'offline',
    () => {
      tell(now('cut'));
      changed.abort();
    },
    { signal: either },
  );
  return either;
}

/** Waits until the reader is known, and as `isSo` says. Looks every {@link LOOK_MS}, also in a tab that is not seen. */
function whenMe(queries: QueryClient, isSo: (me: Me) => boolean, signal: AbortSignal): Promise<Me> {
  const often = { refetchInterval: LOOK_MS, refetchIntervalInBackground: true };
  const observer = new QueryObserver(queries, { ...me, ...often });
  return new Promise((resolve, reject) => {
    const look = ({ data }: { data: Me | undefined }) => {
      if (data === undefined || !isSo(data)) return;
      stop();
      resolve(data);
    };
    const stop = observer.subscribe(look);
    signal.addEventListener('abort', () => {
      stop();
      reject(signal.reason as Error);
    });
    look(observer.getCurrentResult());
  });
}

/** Waits in real time, at most until the signal is aborted. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
