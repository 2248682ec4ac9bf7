import type { QueryClient } from '@tanstack/react-query';
import { concernsOf } from './concerns.js';
import { connectionNow, READ_AGAIN_MS, setConnection } from './connection.js';
import { followForAll, followsFromStart, type Message } from './follow.js';
import { inOneTab } from './one-tab.js';
import { eventsAfter, readStart, startNow } from '../api/start.js';
import { whenMe } from '../api/when-me.js';

/** How long events are gathered before what they concern is read again: a deploy tells several at once. */
const GATHER_MS = 50;

/**
 * Follows the organization's events until the signal is aborted, and has every query read again that an event concerns. After a cut it
 * goes on where it was; if events were deleted meanwhile, or the browser was offline, everything is read again, and at intervals while
 * there are no events. Of the tabs of a browser one follows for all: a browser has few connections to a server, and a user few streams.
 */
export async function followLive(queries: QueryClient, signal: AbortSignal): Promise<void> {
  const me = await whenMe(queries, () => true, signal);
  if (!me) return;
  await readStart(me, signal);
  const { user, active_organization_id } = me;
  await inOneTab<Message>(
    {
      name: `gpurent.events.${user.id}.${active_organization_id ?? ''}`,
      lead: (tell, turn) => followForAll(queries, tell, turn),
      hear: hearing(queries),
      latest: () => ({ connection: connectionNow() }),
    },
    signal,
  );
}

/** Returns what a tab does with what it is told. */
function hearing(queries: QueryClient): (message: Message) => void {
  const keys = new Map<string, readonly string[]>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const refresh = () => {
    timer = undefined;
    for (const queryKey of keys.values()) void queries.invalidateQueries({ queryKey });
    keys.clear();
  };
  const note = (event: Parameters<typeof concernsOf>[0]) => {
    for (const key of concernsOf(event)) keys.set(key.join('/'), key);
    timer ??= setTimeout(refresh, GATHER_MS);
  };
  let reading: ReturnType<typeof setInterval> | undefined;
  const readAll = () => {
    if (!document.hidden) void queries.invalidateQueries();
  };
  return (message) => {
    if ('event' in message) return note(message.event);
    const [before, { connection }] = [connectionNow(), message];
    setConnection(connection);
    const isOther = before.state !== connection.state || before.since !== connection.since;
    // What was read before the stream was open can have changed since, and no event has told it. What is shown to a reader without events
    // may be theirs no more: they were removed, or have another role.
    const isOld = connection.state === 'live' || (connection.state === 'off' && before.state !== 'connecting');
    if (isOther && isOld)
      void (before.state === 'connecting' ? goOnFromStart(queries, note) : queries.invalidateQueries());
    if (before.state === connection.state) return;
    clearInterval(reading);
    if (connection.state === 'off') reading = setInterval(readAll, READ_AGAIN_MS);
  };
}

/** Has read again what can have changed since the page began to read: what was read before that, and what the events since concern. */
async function goOnFromStart(
  queries: QueryClient,
  note: (event: Parameters<typeof concernsOf>[0]) => void,
): Promise<void> {
  const start = startNow();
  if (!start) return queries.invalidateQueries();
  void queries.invalidateQueries({ predicate: ({ state }) => state.dataUpdatedAt <= start.at });
  if (followsFromStart()) return;
  const events = await eventsAfter(start.after);
  if (!events) return queries.invalidateQueries();
  events.forEach(note);
}
